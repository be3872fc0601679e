// The phases of a chain for one request: the stages with what they are asked for, their files and expected times.
#pragma once

#include "pipeline/chain.h"
#include "pipeline/phase.h"

namespace fairway::pipeline {

// In order; "train" is the first. The phases call `stages`, which must outlive them.
std::vector<Phase> plan_phases(const ChainRequest& request, const Recipe& recipe, const Stages& stages);

}  // namespace fairway::pipeline
