#include "artifact/lane_tables.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/trellis.h"

namespace fairway {
namespace {

constexpr int kWidthsPerOctave = 32, kLeastWidthOctave = -6;
constexpr double kLeastSlots = 0.7;  // a level with less goes to the escape

// By sums and products alone, so that every machine has the same.
double width_value(int index) {
  double value = 1;
  for (int i = 0; i < index % kWidthsPerOctave; ++i) value *= 1.0218971486541166;  // 2^(1/32)
  return std::ldexp(value, index / kWidthsPerOctave + kLeastWidthOctave);
}
double exp_negative(double y) {  // e^−y
  double small = y / 256, term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) term *= small / k, sum += term;
  for (int k = 0; k < 8; ++k) sum *= sum;
  return 1 / sum;
}

// Adds half the shares of the bins [v − ½, v + ½) of a Gaussian density h^((8x)²), by the midpoint rule at x = (j + ½)/4, four
// points a bin, of even or odd v eight. Neighbouring points differ by a factor h^(8(j+1))…, so multiplication alone does it.
void add_gaussian(int width, LaneLevels levels, LaneShares& shares) {
  const double sigma = std::max(width_value(width), 0.03);
  const double h = exp_negative(1 / (128 * sigma * sigma));  // (8x)² = (2j + 1)²; e^(−x²/2σ²) = h^((8x)²)
  double h8 = h * h;
  h8 *= h8, h8 *= h8;
  LaneShares own{};
  double point = h, step = 1, sum = 0;
  for (size_t j = 0; point > 1e-60; ++j) {
    const size_t level = levels == LaneLevels::all ? (j + 2) / 4 : levels == LaneLevels::even ? (j + 4) / 8 * 2 : j / 8 * 2 + 1;
    if (level >= own.size()) break;
    own[level] += point;
    step *= h8, point *= step;
  }
  for (const double share : own) sum += 2 * share;  // both signs; of zero both halves
  own[0] *= 2;
  for (size_t v = 0; v < own.size(); ++v) shares[v] += own[v] / (2 * sum);
}

// Of a number that is not negative, in sums and products alone: every machine must find the same.
int nearest(double x) { return static_cast<int>(2 * x + 1) / 2; }

}  // namespace

int width_of_class(int width, int index) {
  return std::clamp(width + kWidthsPerOctave / kClassesPerOctave * (index - kMiddleClass), 0, kLaneWidths - 1);
}

LaneShares lane_shares(int width, int spread, int largest, LaneLevels levels) {
  LaneShares shares{};
  const int apart = kLaneSpreads[static_cast<size_t>(spread)];
  for (const int side : {width - apart, width + apart}) add_gaussian(std::clamp(side, 0, kLaneWidths - 1), levels, shares);
  double sum = shares[0];
  for (int v = 1; v <= largest; ++v) sum += 2 * shares[static_cast<size_t>(v)];
  for (int v = 0; v <= kMostLevel; ++v)
    shares[static_cast<size_t>(v)] = v <= largest ? shares[static_cast<size_t>(v)] / sum : 0;
  return shares;
}

LaneClass lane_class(int width, int spread, int largest, LaneLevels levels) {
  const bool all = levels == LaneLevels::all;
  const int first = levels == LaneLevels::odd ? 1 : 0, step = all ? 1 : 2, escapes = step;
  if (!all) largest = std::min(largest, kTrellisLevel);
  const LaneShares shares = lane_shares(width, spread, largest, levels);
  LaneClass out{.core = first};
  while (out.core + step <= largest && shares[static_cast<size_t>(out.core + step)] * kLaneScale >= kLeastSlots)
    out.core += step;
  // From the rarest to zero; what rounding gave or took goes on to the next.
  double beyond = 0;
  for (int v = out.core + 1; v <= largest; ++v) beyond += 2 * shares[static_cast<size_t>(v)];
  const int escape = out.core + step <= largest ? std::max(1, nearest(beyond * kLaneScale / escapes)) : 0;
  double carry = beyond * kLaneScale - escapes * escape;
  int left = static_cast<int>(kLaneScale) - escapes * escape;
  std::array<int, kMostLevel + 1> freq{};
  for (int v = out.core; v > first; v -= step) {
    const double ideal = shares[static_cast<size_t>(v)] * kLaneScale + carry / 2;
    int& own = freq[static_cast<size_t>(v)];
    own = std::max(1, nearest(ideal));
    carry = 2 * (ideal - own), left -= 2 * own;
  }
  FAIRWAY_ASSERT(left > first, "frequencies do not fit their scale");
  freq[static_cast<size_t>(first)] = left / (1 + first);
  uint32_t start = 0;
  const auto put = [&](int symbol, int count) {
    out.ranges[static_cast<size_t>(symbol - kEscape)] = {static_cast<uint16_t>(start), static_cast<uint16_t>(count)};
    start += static_cast<uint32_t>(count);
  };
  for (int i = 0; i < escapes; ++i) put(kEscape + first + 2 * i, escape);
  for (int v = -out.core; v <= out.core; v += step) put(v, freq[static_cast<size_t>(std::abs(v))]);
  return out;
}

LaneTables::LaneTables(const LaneShape& shape) : trellis_(shape.trellis), last_(shape.highest - shape.lowest) {
  const auto add = [&](int index, LaneLevels levels) {
    classes_.push_back(lane_class(width_of_class(shape.width, index), shape.spread, shape.largest, levels));
  };
  for (int index = shape.lowest; index <= shape.highest; ++index) {
    add(index, trellis_ ? LaneLevels::even : LaneLevels::all);
    if (trellis_) add(index, LaneLevels::odd);
  }
  entries_.resize(classes_.size() * kLaneScale);
  uint32_t* place = entries_.data();
  for (const LaneClass& own : classes_) {
    for (int s = 0; s < 256; ++s) {
      const uint32_t freq = own.ranges[static_cast<size_t>(s)].freq;
      const uint32_t entry = static_cast<uint8_t>(s + kEscape) | freq << 8;
      for (uint32_t i = 0; i < freq; ++i) *place++ = entry | i << 20;
    }
  }
}

EscapeModel::EscapeModel(int largest, FineModel::Use use) : alphabet_{0, std::max(largest - 1, 1)}, use_(use) {
  std::array<uint32_t, kMostLevel> prior{};
  for (size_t k = 0; k < prior.size(); ++k) prior[k] = std::max(1U, k < 10 ? 4 * FineModel::kObservation >> k : 0U);
  model_.begin(prior);
  model_.refresh(alphabet_, use_);
}

}  // namespace fairway
