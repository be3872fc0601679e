// Training a recipe in a folder, with its validation, size forecast and online calibration.
#pragma once

#include "comm/communicator.h"
#include "stages/machine.h"
#include "stages/requests.h"
#include "train/loop.h"

namespace fairway {

// Leaves the run's files in request.out. `start`: the weights of request.from, which the caller has read. Collective.
TrainSummary train_stage(const TrainRequest& request, const Compute& compute, Communicator& comm,
                         const ParamStore* start = nullptr);

}  // namespace fairway
