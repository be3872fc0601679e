// How long a score would take, measured on this machine before any token of the stream is scored.
#pragma once

#include "comm/communicator.h"
#include "score/evaluator.h"
#include "stages/held_out.h"
#include "stages/machine.h"

namespace fairway::app {

// By rank 0's clock, so that all ranks come to the same decision; ranks share the work of legal modes. Collective.
double seconds_needed(const ScoredModel& model, const ScoreSettings& settings, int64_t targets, Machine& machine,
                      Communicator& comm);

// InputError where the recipe's own evaluation of all validation tokens would take longer than `most`: measured with fresh
// weights, whose values change no time, before hours are spent on trained ones. Collective.
void require_score_time(const Recipe& recipe, const HeldOut& held_out, double most, const Compute& compute, Communicator& comm);

}  // namespace fairway::app
