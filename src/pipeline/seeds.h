// The same recipe with several seeds, one after another, each in a folder of its own; seeds.json tells what is done. Ends with
// the statistics over the seeds.
#pragma once

#include "pipeline/chain.h"

namespace fairway::pipeline {

struct SeedsRequest {
  ChainRequest chain;  // its overrides get train.seed, its folder a seed's name
  std::vector<int64_t> seeds;
  std::vector<std::string> against;  // runs or a published system to compare with; may be empty
};

std::vector<int64_t> parse_seeds(const std::string& text);  // "1,2,3"; InputError names what is no seed or occurs twice

struct SeedsResult {
  int status = 0;
  nlohmann::ordered_json result;
  std::string text;
};
SeedsResult run_seeds(const SeedsRequest& request, const Stages& stages, const Say& say);

}  // namespace fairway::pipeline
