// The phases of a chain for one request: their commands, files and expected times.
#pragma once

#include "pipeline/chain.h"
#include "pipeline/phase.h"

namespace fairway::pipeline {

// In order; "train" is the first.
std::vector<Phase> plan_phases(const ChainRequest& request, const Recipe& recipe);

// Runs the phase's command with its flags, once for each prompt where it has some.
Outcome execute_phase(const Phase& phase, const Execute& execute);

}  // namespace fairway::pipeline
