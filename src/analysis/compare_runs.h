// Sets of scores, one for each seed: read from runs or from what was published, described, and tested against each other.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/statistics.h"

namespace fairway {

struct SeedScores {
  std::vector<double> nats, bpb;  // as many as seeds; one of them may be empty (published values)
  std::vector<int64_t> seeds;     // empty when not every seed is known
  size_t size() const { return bpb.empty() ? nats.size() : bpb.size(); }
};

// Each name is a run folder, a folder of `fairway run --seeds`, a score.json, or a published system ("pr1855").
// InputError names the file and what it lacks.
SeedScores read_scores(const std::vector<std::string>& names);

struct Comparison {
  double delta_bpb = 0, delta_nats = 0;  // NaN where it cannot be told
  TTest test, margin;                    // margin: one-sided, better by more than 0.005 nats per token
  bool through_bytes = false;            // tested in bits per byte, because tokenizers differ or a side has no nats
  bool paired = false, record = false;
  double margin_bpb = 0;  // 0.005 nats per token of these runs, in bits per byte; 0 when not known
};
// Needs two scores on each side, for a paired test the same number; known seeds are paired with their equals, and refused when
// they differ.
Comparison compare_scores(const SeedScores& runs, SeedScores against, bool paired);

nlohmann::ordered_json to_json(const Comparison& comparison);
std::string to_text(const Comparison& comparison);
std::string describe(const std::string& what, const SeedScores& scores);

}  // namespace fairway
