#include "artifact/shaped_models.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <utility>

namespace fairway {
namespace {

constexpr int kScales = 1 << WeightShape::kScaleBits, kPerOctave = 32, kLeastOctave = -9;

// 2^(index/32 − 9) by multiplication alone, so that every machine has the same.
double mean_of_scale(int index) {
  double mean = 1;
  for (int i = 0; i < index % kPerOctave; ++i) mean *= 1.0218971486541166;  // 2^(1/32)
  return std::ldexp(mean, index / kPerOctave + kLeastOctave);
}

// Bins [v − ½, v + ½) of a Gaussian density h^((16x)²), by the midpoint rule at x = (j + ½)/8, eight points a bin. Neighbouring
// points differ by a factor h^(8(j+1)), so multiplication alone does it.
struct BinnedGaussian {
  static constexpr double kLeastPoint = 1e-60;
  Shares bins;
  double sum = 0, moment = 0;  // of both signs

  explicit BinnedGaussian(double h) {
    double h8 = h * h;
    h8 *= h8, h8 *= h8;
    double point = h, step = 1;
    size_t v = 0;
    for (int points = 4; v < bins.size() && point > kLeastPoint; ++v, points = 8) {
      double bin = 0;
      for (int i = 0; i < points && point > kLeastPoint; ++i) {
        bin += point;
        step *= h8, point *= step;
      }
      bins[v] = bin;
      sum += 2 * bin;  // of zero both halves
      moment += 2 * static_cast<double>(v) * bin;
    }
    std::fill(bins.begin() + static_cast<std::ptrdiff_t>(v), bins.end(), 0.0);
  }
  double mean() const { return moment / sum; }
  Shares shares() const {
    Shares out = bins;
    for (double& share : out) share /= sum;
    out[0] *= 2;
    return out;
  }
};

// About the h whose mean this is, by secants on logarithms. A guess: what comes of it does not depend on its last digits.
double guessed_h(double mean) {
  constexpr double kSmall = 0.3, kDeviation = 1.2533;  // of a mean of one
  const auto h_of = [](double log_deviation) { return std::exp(-std::exp(-2 * log_deviation) / 512); };
  const auto miss = [&](double log_deviation) { return std::log(BinnedGaussian(h_of(log_deviation)).mean() / mean); };
  double before = mean > kSmall ? std::log(kDeviation * mean) : -0.5 * std::log(8 * std::log(1 / mean));
  double missed_before = miss(before), at = before - (mean > kSmall ? 1 : 0.2) * missed_before - 1e-9, missed = miss(at);
  for (int i = 0; i < 12 && std::abs(missed) > 1e-13 && missed != missed_before; ++i) {
    const double next = at - missed * (at - before) / (missed - missed_before);
    before = std::exchange(at, next);
    missed_before = std::exchange(missed, miss(at));
  }
  return h_of(at);
}

// Where bisection of [0, 1] ends after 52 rounds, the same on every machine. Rounds are leapt over where both ends of the
// interval that they would have left are seen to hold the mean between them.
double bisected_h(double mean) {
  constexpr int kRounds = 52;
  const auto below = [&](double h) { return BinnedGaussian(h).mean() < mean; };
  const double guess = guessed_h(mean);
  double low = 0, high = 1, h = 0;
  int done = 0;
  for (const int rounds : {46, 42, 32}) {
    const double from = std::ldexp(std::floor(std::ldexp(guess, rounds)), -rounds), to = from + std::ldexp(1.0, -rounds);
    if (!(from > 0 && to < 1) || !below(from) || below(to)) continue;
    low = from, high = to, done = rounds;
    break;
  }
  for (; done < kRounds; ++done) {
    h = (low + high) / 2;
    (below(h) ? low : high) = h;
  }
  return h;
}

const Shares& gaussian_of_scale(int index) {
  struct Entry {
    std::once_flag once;
    Shares shares{};
  };
  static const std::unique_ptr<Entry[]> kEntries(new Entry[kScales]);
  Entry& entry = kEntries[static_cast<size_t>(index)];
  std::call_once(entry.once, [&] { entry.shares = BinnedGaussian(bisected_h(mean_of_scale(index))).shares(); });
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
