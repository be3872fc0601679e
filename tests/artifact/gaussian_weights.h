// Weights as quantizers leave them, for tests of the coders.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "base/trellis.h"

namespace fairway {

using Values = std::vector<int8_t>;

inline int8_t clipped(double value, int level) {
  return static_cast<int8_t>(std::clamp(static_cast<int>(std::lround(value)), -level, level));
}

inline Values gaussian(int64_t count, double spread, int level, uint64_t seed) {
  Rng rng(seed);
  Values out(static_cast<size_t>(count));
  for (int8_t& q : out) q = clipped(spread * rng.normal(), level);
  return out;
}

// The nearest that a trellis allows, without a search.
inline Values gaussian_on_trellis(int64_t rows, int64_t cols, double spread, int level, uint64_t seed) {
  Rng rng(seed);
  Values out;
  std::vector<int> states(static_cast<size_t>(cols));
  for (int64_t row = 0; row < rows; ++row) {
    if (row % kTrellisRows == 0) std::fill(states.begin(), states.end(), 0);
    for (int& state : states) {
      const int odd = state & 1, most = level - ((level ^ odd) & 1);
      const int q = 2 * static_cast<int>(std::lround((spread * rng.normal() - odd) / 2)) + odd;
      out.push_back(static_cast<int8_t>(std::clamp(q, -most, most)));
      state = next_trellis_state(state, out.back());
    }
  }
  return out;
}

struct GaussianCase {
  double spread;  // standard deviation in steps of the grid
  int level;      // the largest
};
// int6 k = 12.85, 11.5; int8 k = 20; int7 k = 14; int6 and int5 at four sigma (scoring spec §4.12).
inline constexpr GaussianCase kGaussianCases[] = {{31 / 12.85, 31}, {31 / 11.5, 31}, {127.0 / 20, 127},
                                                  {63.0 / 14, 63},  {31.0 / 4, 31},  {15.0 / 4, 15}};

}  // namespace fairway
