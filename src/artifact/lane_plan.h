// How one tensor is coded in lanes (version 3): its shape, a class for each column where columns differ, and how the row so far
// tells what the rest of it will be. Under a clip by standard deviation every row has the same sum of squares, so what is seen
// is missing later; under a clip by the largest weight rows differ, and what is seen goes on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "artifact/lane_tables.h"

namespace fairway {

inline constexpr int kLaneRows = 16, kLaneCols = 16;  // a block of rows goes in lockstep; the row's class is renewed after 16
inline constexpr int64_t kMostContextCols = 1 << 15;  // wider tensors have one class: 127²·cols stays below 2^31
inline constexpr int kRowSteps = 12;                  // a row's class lies at most half as many beside its columns'

struct RowRule {
  int sign = 0;       // +1: the rest is like what is seen; −1: what is seen is missing in the rest; 0: not looked at
  double weight = 0;  // +1: columns that the expectation counts for; −1: how far sums of squares differ between rows
};
inline constexpr std::array<RowRule, 8> kRowRules{
    {{0, 0}, {1, 16}, {1, 64}, {1, 256}, {-1, 0.03}, {-1, 0.1}, {-1, 0.3}, {-1, 1}}};

struct LanePlan {
  static constexpr int kRuleBits = 3, kPowerBits = 12, kNearBits = 7;
  LaneShape shape;
  int rule = 0;                 // of kRowRules
  int power = 0;                // mean square: 2^(power/128 − 10)
  bool classed = false;         // columns of this tensor, or of one that repeats its plan, may have classes
  bool coarse = false;          // columns' classes are even
  std::vector<int8_t> columns;  // class of each beside the middle one; empty: none differs
};

// What is expected of a row's sum of squares before each group of columns, and where its class changes.
class RowGauge {
 public:
  struct Group {
    int32_t expected = 0;
    std::array<int32_t, kRowSteps> limits{};  // ascending; the class is −6 + how many of them sign·(sum − expected) reaches
  };
  RowGauge(const LanePlan& plan, int64_t cols);
  int sign() const { return sign_; }
  const Group& operator[](int64_t group) const { return groups_[static_cast<size_t>(group)]; }
  int row_class(int32_t squares, int64_t group) const {
    if (sign_ == 0) return 0;
    const Group& own = groups_[static_cast<size_t>(group)];
    const int32_t distance = sign_ * (squares - own.expected);
    int out = -kRowSteps / 2;
    for (const int32_t limit : own.limits) out += distance >= limit ? 1 : 0;
    return out;
  }

 private:
  int sign_;
  std::vector<Group> groups_;
};

int nearest_power(double mean_square);
// The mean square that weights of one class of this width have; where there is but one, the plan's lies less than 2^6 from it.
inline int usual_power(int width) { return 8 * width - 256; }
inline bool near_usual(const LanePlan& plan) {
  const int apart = plan.power - usual_power(plan.shape.width), most = 1 << (LanePlan::kNearBits - 1);
  return apart >= -most && apart < most;
}
// Classes that rows may lead to where columns have none.
void reach_rows(LanePlan& plan);

}  // namespace fairway
