// A grid of settings by successive halving: every rung trains its trials anew for a longer time, because schedules follow the
// budget; sweep.json tells what is done. The winner of the last rung becomes a whole run.
#pragma once

#include "pipeline/chain.h"

namespace fairway::pipeline {

struct SweepRequest {
  ChainRequest chain;
  std::vector<std::string> axes;  // "key=a,b,c"
  int factor = 2;                 // one of so many goes on
};

struct SweepResult {
  int status = 0;
  nlohmann::ordered_json result;
  std::string text;
};
// InputError before any work when a combination is no recipe.
SweepResult run_sweep(const SweepRequest& request, const Stages& stages, const Say& say);

}  // namespace fairway::pipeline
