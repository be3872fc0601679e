#include "artifact/lane_plan.h"

#include <algorithm>
#include <cmath>

namespace fairway {
namespace {

constexpr int kPowersPerOctave = 128, kLeastPowerOctave = -10;
constexpr double kQuarterOctave = 1.189207115002721;  // 2^(1/4)

double power_value(int index) {  // by products alone
  double value = 1;
  for (int i = 0; i < index % kPowersPerOctave; ++i) value *= 1.0054299011128027;  // 2^(1/128)
  return std::ldexp(value, index / kPowersPerOctave + kLeastPowerOctave);
}

double quarter_power(int count) {  // 2^(count/4)
  double value = 1;
  for (int i = 0; i < (count & 3); ++i) value *= kQuarterOctave;
  return std::ldexp(value, count >> 2);
}

int32_t limit_of(double value) { return static_cast<int32_t>(std::clamp(std::ceil(value), -2e9, 2e9)); }

}  // namespace

int nearest_power(double mean_square) {
  if (!(mean_square > 0)) return 0;
  return std::clamp(static_cast<int>(std::lround(kPowersPerOctave * (std::log2(mean_square) - kLeastPowerOctave))), 0,
                    (1 << LanePlan::kPowerBits) - 1);
}

void reach_rows(LanePlan& plan) {
  const int more = plan.rule != 0 ? kRowSteps / 2 : 0;
  plan.shape.lowest = kMiddleClass - more, plan.shape.highest = kMiddleClass + more;
}

RowGauge::RowGauge(const LanePlan& plan, int64_t cols) : sign_(kRowRules[static_cast<size_t>(plan.rule)].sign) {
  if (sign_ == 0) return;
  // Variances go with the square of the class's width: 2^(class/4).
  const double mean = power_value(plan.power), total = mean * static_cast<double>(cols);
  double shares = 0, seen = 0;
  for (const int8_t c : plan.columns) shares += quarter_power(c);
  const double weight = kRowRules[static_cast<size_t>(plan.rule)].weight;
  for (int64_t j = 0; j < cols; j += kLaneCols) {
    Group& group = groups_.emplace_back();
    group.expected = static_cast<int32_t>(std::min(seen + 0.5, 2e9));
    const double base = sign_ > 0 ? seen + weight * mean : total - seen + weight * total;
    for (int k = 0; k < kRowSteps; ++k) {
      // Half-way between classes: variance 2^((2k − 11)/8) of what it would be.
      const int eighths = 2 * k - (kRowSteps - 1);
      const double ratio = quarter_power(eighths >> 1) * ((eighths & 1) != 0 ? 1.0905077326652577 : 1.0);
      group.limits[static_cast<size_t>(k)] = limit_of(base * (ratio - 1));
    }
    for (int64_t i = j; i < std::min<int64_t>(j + kLaneCols, cols); ++i)
      seen += plan.columns.empty() ? mean : total / shares * quarter_power(plan.columns[static_cast<size_t>(i)]);
  }
}

}  // namespace fairway
