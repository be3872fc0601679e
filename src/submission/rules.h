// The rules a submission is refused by, each with its sentence (scoring spec §3, §6.1, §8).
#pragma once

#include <span>

#include "submission/run_facts.h"

namespace fairway::submission {

inline constexpr uint64_t kMostBytes = 16'000'000;
inline constexpr double kMostSeconds = 600;  // of training, and again of scoring
inline constexpr size_t kLeastSeeds = 3;

struct Code {
  uint64_t bytes = 0;   // compressed sources, which count with the artifact
  std::string program;  // SHA-256 of the program whose sources they are
};

// One sentence for each broken rule; none when the runs may be submitted.
std::vector<std::string> broken_rules(std::span<const RunFacts> runs, const Code& code);

}  // namespace fairway::submission
