// Chooses how a tensor is coded in lanes: what costs the fewest bits on a sample of its rows.
#pragma once

#include "artifact/lane_plan.h"
#include "artifact/weight_coder.h"

namespace fairway {

// before: the plan of the tensor before it in the chunk, which costs next to nothing to repeat; null: none.
LanePlan fitted_plan(const WeightBlock& block, const LanePlan* before);

}  // namespace fairway
