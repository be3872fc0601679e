#include "artifact/shaped_models.h"

#include <cmath>
#include <memory>
#include <mutex>

namespace fairway {
namespace {

constexpr int kScales = 1 << WeightShape::kScaleBits, kPerOctave = 32, kLeastOctave = -9;

// 2^(index/32 − 9) by multiplication alone, so that every machine has the same.
double mean_of_scale(int index) {
  double mean = 1;
  for (int i = 0; i < index % kPerOctave; ++i) mean *= 1.0218971486541166;  // 2^(1/32)
  return std::ldexp(mean, index / kPerOctave + kLeastOctave);
}

// Shares of the bins [v − ½, v + ½) of a Gaussian density h^((16x)²), by the midpoint rule at x = (j + ½)/8, eight points a
// bin. Neighbouring points differ by a factor h^(8(j+1)), so multiplication alone does it. Returns the mean |v|.
double binned_gaussian(double h, Shares& shares) {
  double h8 = h * h;
  h8 *= h8, h8 *= h8;
  double point = h, step = 1, sum = 0, moment = 0;
  shares.fill(0);
  for (size_t j = 0; j < 8 * shares.size() - 4 && point > 1e-60; ++j) {
    shares[(j + 4) / 8] += point;
    step *= h8, point *= step;
  }
  for (size_t v = 0; v < shares.size(); ++v) {
    sum += 2 * shares[v];  // both signs; of zero both halves
    moment += 2 * static_cast<double>(v) * shares[v];
  }
  for (double& share : shares) share /= sum;
  shares[0] *= 2;
  return moment / sum;
}

const Shares& gaussian_of_scale(int index) {
  struct Entry {
    std::once_flag once;
    Shares shares{};
  };
  static const std::unique_ptr<Entry[]> kEntries(new Entry[kScales]);
  Entry& entry = kEntries[static_cast<size_t>(index)];
  std::call_once(entry.once, [&] {
    const double target = mean_of_scale(index);
    double low = 0, high = 1;
    for (int i = 0; i < 52; ++i) {
      const double h = (low + high) / 2;
      (binned_gaussian(h, entry.shares) < target ? low : high) = h;
    }
  });
  return entry.shares;
}

// Where the middle of a class lies beside the middle of kMeanClass, in 32nds of an octave: 32·log2((8.5 + e)/8.5).
int scale_of_class(int scale, int index) {
  constexpr int kEighths[8] = {0, 5, 10, 14, 18, 21, 25, 28};
  return scale + kPerOctave * (index / 8 - kMeanClass / 8) + kEighths[index % 8];
}

}  // namespace

Shares shares_of(int scale, int spread) {
  const int apart = kSpreads[static_cast<size_t>(spread)];
  const Shares& narrow = gaussian_of_scale(std::clamp(scale - apart, 0, kScales - 1));
  const Shares& wide = gaussian_of_scale(std::clamp(scale + apart, 0, kScales - 1));
  Shares out;
  for (size_t v = 0; v < out.size(); ++v) out[v] = (narrow[v] + wide[v]) / 2;
  return out;
}

WeightWalk::Base base_of(const WeightShape& shape) {
  const double mean = std::ldexp(mean_of_scale(shape.scale), kMeanBits);
  // Class kMeanClass begins at 2^14 in class_of and is an eighth wide; the mean lies in its middle.
  return {kMeanClass, static_cast<int32_t>(mean), static_cast<float>(std::ldexp(1.0625, 14) / mean)};
}

int nearest_scale(double mean) {
  if (!(mean > 0)) return 0;
  return std::clamp(static_cast<int>(std::lround(kPerOctave * (std::log2(mean) - kLeastOctave))), 0, kScales - 1);
}

void ShapedModels::begin_shape(const WeightShape& shape) {
  shape_ = shape;
  known_ = ready_ = 0;
  models_.clear();
}

void ShapedModels::prepare(uint64_t classes) {
  for (; classes != 0; classes &= classes - 1) {
    const int index = std::countr_zero(classes);
    if ((known_ >> index & 1) == 0) {
      const Shares shares = shares_of(std::clamp(scale_of_class(shape_.scale, index), 0, kScales - 1), shape_.spread);
      begin_model(index, shares);
      if (trellis_) begin_model(index + kClasses, shares);
      known_ |= uint64_t{1} << index;
    }
    (*this)[index].refresh(alphabet_, use_);
    if (trellis_) (*this)[index + kClasses].refresh(alphabet_, use_);
    ready_ |= uint64_t{1} << index;
  }
}

void ShapedModels::begin_model(int context, const Shares& shares) {
  const double units = kStrengths[static_cast<size_t>(shape_.strength)] * FineModel::kObservation * (trellis_ ? 2 : 1);
  std::array<uint32_t, 256> prior{};
  for (int v = -kZeroSymbol; v <= kZeroSymbol; ++v) {
    if (trellis_ && (v & 1) != context / kClasses) continue;
    prior[static_cast<size_t>(v + kZeroSymbol)] = nearest_count(shares[static_cast<size_t>(v < 0 ? -v : v)] * units);
  }
  places_[static_cast<size_t>(context)] = static_cast<uint8_t>(models_.size());
  models_.emplace_back().begin(prior);
}

void ShapedModels::adapt() {
  for (uint64_t left = ready_; left != 0; left &= left - 1) {
    for (int context = std::countr_zero(left); context < (trellis_ ? 2 : 1) * kClasses; context += kClasses) {
      FineModel& model = (*this)[context];
      if (model.due()) model.refresh(alphabet_, use_);
    }
  }
}

}  // namespace fairway
