// What attention heads look at (scoring spec §7.3), from probabilities made again out of the observed queries and keys.
#pragma once

#include <array>
#include <vector>

#include "analysis/token_rows.h"

namespace fairway {

enum class HeadClass : uint8_t { induction, previous, positional, other };
const char* name_of(HeadClass head);

inline constexpr double kInductionLeast = 0.02, kPreviousLeast = 0.1, kPositionalLeast = 0.1;  // exceeded, in this order

struct HeadScore {
  int64_t layer = 0, pass = 0, head = 0;  // pass: a looped layer has several
  double previous = 0;                    // mean a[t, t−1], t >= 1
  double first = 0;                       // mean a[t, 0]
  double self = 0;                        // mean a[t, t]
  std::array<double, 5> offsets{};        // mean a[t, t−k], k = 1 … 5, t >= k
  double entropy = 0;                     // nats
  double induction = 0;                   // mean a[i, j+1] over pairs x_j = x_{i−1}, j < i−1: the published definition
  double induction_classical = 0;         // over pairs x_j = x_i, j < i: at the repeated token itself

  HeadClass by(double induction_score) const;
  HeadClass published() const { return by(induction); }
  HeadClass classical() const { return by(induction_classical); }
};

// Heads of every pass over a layer, in order of execution. A row of no pairs counts for nothing in the induction scores.
std::vector<HeadScore> measure_heads(const AnalysisInput& input);

}  // namespace fairway
