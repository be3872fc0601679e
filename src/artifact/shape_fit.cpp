#include "artifact/shape_fit.h"

#include <cmath>

namespace fairway {
namespace {

constexpr double kLeastShare = 1.0 / (1 << kFineScaleBits);
constexpr int kScaleCount = 1 << WeightShape::kScaleBits;

double cost_bits(const Shares& magnitudes, int scale, int spread) {
  const Shares shares = shares_of(scale, spread);
  double bits = 0;
  for (size_t v = 0; v < shares.size(); ++v) {
    if (magnitudes[v] > 0) bits -= magnitudes[v] * std::log2(std::max(shares[v], kLeastShare));
  }
  return bits;
}

}  // namespace

WeightShape fitted_shape(const Histogram& histogram, WeightShape shape) {
  Shares magnitudes{};
  double count = 0, sum = 0;
  for (int symbol = 0; symbol <= 2 * kZeroSymbol; ++symbol) {
    const auto magnitude = static_cast<size_t>(std::abs(symbol - kZeroSymbol));
    const auto many = static_cast<double>(histogram[static_cast<size_t>(symbol)]);
    magnitudes[magnitude] += many;
    count += many, sum += many * static_cast<double>(magnitude);
  }
  if (!(sum > 0)) return shape;
  double least = INFINITY;
  int scale = nearest_scale(sum / count);
  for (int spread = 0; spread < static_cast<int>(kSpreads.size()); ++spread) {  // costs have one valley along the scale
    double here = cost_bits(magnitudes, scale, spread);
    for (const int step : {-1, 1}) {
      for (int next = scale + step; next >= 0 && next < kScaleCount; next += step) {
        const double cost = cost_bits(magnitudes, next, spread);
        if (!(cost < here)) break;
        here = cost, scale = next;
      }
    }
    if (here < least) least = here, shape.scale = scale, shape.spread = spread;
  }
  return shape;
}

}  // namespace fairway
