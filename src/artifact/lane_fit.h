// Chooses how the tensors of a chunk are coded in lanes: what costs the fewest bits on a sample of their rows.
#pragma once

#include <span>
#include <vector>

#include "artifact/lane_plan.h"
#include "artifact/weight_coder.h"

namespace fairway {

std::vector<LanePlan> fitted_plans(std::span<const WeightBlock> blocks);

}  // namespace fairway
