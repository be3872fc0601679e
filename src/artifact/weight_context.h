// Contexts of the learning weight coder: classes of expected magnitude, eight to the octave and relative to the tensor's mean,
// each with its own adaptive model (shaped_models.h).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/trellis.h"

namespace fairway {

inline constexpr int kClasses = 64;        // mean |q| from 2^-3 to 2^5
inline constexpr int kZeroSymbol = 127;    // symbol = q + 127
inline constexpr int kMeanBits = 13;       // running means are integers in units of 2^-13
inline constexpr int64_t kRunLength = 32;  // the row's factor is renewed after so many columns

// Flags of a tensor's mode byte.
inline constexpr int kByColumn = 1, kByRow = 2, kFading = 4, kCentred = 8;

inline int class_of(float mean) {  // in units of 2^-13; class c begins at 2^(10 + c/8), interpolated linearly
  const int steps = static_cast<int>(std::bit_cast<uint32_t>(mean) >> 20) - ((127 + kMeanBits - 3) << 3);
  return std::clamp(steps, 0, kClasses - 1);
}

// Walks one tensor in the order both sides share. coder.run(contexts, d, n, models) codes n <= kRunLength values d; where the
// mode is centred, d = q - the column's rounded mean, modulo 256 as bytes are (250 under a trellis), else d = q. Under a
// trellis, which tells whether d is odd, odd ones have contexts of their own, kClasses further on.
class WeightWalk {
 public:
  struct Base {
    int index = 0;         // class where no context is used
    int32_t mean = 0;      // what is expected before anything is seen, units of 2^-13
    float relative = 1.0;  // a mean times this is what classes are told by
  };
  WeightWalk(int mode, const Base& base, int64_t cols, bool trellis)
      : mode_(mode),
        base_class_(base.index),
        base_(base.mean),
        relative_(base.relative),
        spreads_(static_cast<size_t>(cols), base_),
        centres_((mode & kCentred) != 0 ? static_cast<size_t>(cols) : 0),
        states_(trellis ? static_cast<size_t>(cols) : 0),
        coded_(static_cast<size_t>(cols)) {}

  template <class Models, class Coder>
  void operator()(const int8_t* q, int64_t rows, Models& models, Coder& coder) requires(Coder::kReadsWeights) {
    const auto cols = static_cast<int64_t>(spreads_.size());
    for (int64_t row = 0; row < rows; ++row, q += cols) {
      subtract_centres(q);
      code_row(row, models, coder);
      learn(q, row);
      models.adapt();
    }
  }
  template <class Models, class Coder>
  void operator()(int8_t* q, int64_t rows, Models& models, Coder& coder) requires(!Coder::kReadsWeights) {
    const auto cols = static_cast<int64_t>(spreads_.size());
    for (int64_t row = 0; row < rows; ++row, q += cols) {
      code_row(row, models, coder);
      add_centres(q);
      learn(q, row);
      models.adapt();
    }
  }

 private:
  static constexpr int64_t kRowPrior = 16, kColumnPrior = 16;  // values that the base mean counts for
  static constexpr int64_t kCentreWindow = 32, kFirstRows = 4;

  template <class Models, class Coder>
  void code_row(int64_t row, Models& models, Coder& coder) {
    const auto cols = static_cast<int64_t>(spreads_.size());
    int64_t seen = int64_t{base_} * kRowPrior, expected = seen;
    for (int64_t j = 0; j < cols; j += kRunLength) {
      const int64_t n = std::min(kRunLength, cols - j);
      const float factor = (mode_ & kByRow) != 0 ? static_cast<float>(seen) / static_cast<float>(expected) : 1.0F;
      std::array<uint8_t, kRunLength> classes;
      models.require(classify(spreads_.data() + j, factor * relative_, n, classes.data()));
      for (size_t k = 0; k < static_cast<size_t>(n) && !states_.empty(); ++k) {
        const auto at = static_cast<size_t>(j) + k;
        if (((states_[at] ^ (centres_.empty() ? 0 : centre(at))) & 1) != 0)
          classes[k] = static_cast<uint8_t>(classes[k] + kClasses);
      }
      coder.run(classes.data(), coded_.data() + j, n, models);
      if (row < kFirstRows) models.adapt();  // what the prior has wrong is mended soon
      if ((mode_ & kByRow) == 0) continue;
      for (int64_t k = j; k < j + n; ++k) seen += magnitude(coded_[k]), expected += spreads_[k];
    }
  }
  uint64_t classify(const int32_t* spreads, float factor, int64_t n, uint8_t* classes) const {
    if ((mode_ & (kByColumn | kByRow)) == 0) {
      std::fill_n(classes, n, static_cast<uint8_t>(base_class_));
      return uint64_t{1} << base_class_;
    }
    uint64_t used = 0;
    for (int64_t k = 0; k < n; ++k) classes[k] = static_cast<uint8_t>(class_of(static_cast<float>(spreads[k]) * factor));
    for (int64_t k = 0; k < n; ++k) used |= uint64_t{1} << classes[k];
    return used;
  }
  static int32_t magnitude(int8_t d) { return (d < 0 ? -d : d) << kMeanBits; }
  int8_t centre(size_t j) const { return static_cast<int8_t>((centres_[j] + (1 << (kMeanBits - 1))) >> kMeanBits); }

  // Under a trellis modulo 250, the least even number that tells all levels apart: no difference is then without a symbol.
  int8_t wrapped(int value) const {
    constexpr int kModulus = 2 * (kTrellisLevel + 1);
    if (states_.empty()) return static_cast<int8_t>(value);
    return static_cast<int8_t>(value > kTrellisLevel        ? value - kModulus
                               : value < -kTrellisLevel - 1 ? value + kModulus
                                                            : value);
  }
  void subtract_centres(const int8_t* q) {
    if (centres_.empty()) std::copy_n(q, coded_.size(), coded_.begin());
    for (size_t j = 0; j < centres_.size(); ++j) coded_[j] = wrapped(q[j] - centre(j));
  }
  void add_centres(int8_t* q) const {
    if (centres_.empty()) std::copy(coded_.begin(), coded_.end(), q);
    for (size_t j = 0; j < centres_.size(); ++j) q[j] = wrapped(coded_[j] + centre(j));
  }
  // Running means; a difference is below 2^20 and a share at most 2^11, so the product keeps within 32 bits.
  void learn(const int8_t* q, int64_t row) {
    for (size_t j = 0; j < states_.size(); ++j)
      states_[j] = static_cast<uint8_t>((row + 1) % kTrellisRows == 0 ? 0 : next_trellis_state(states_[j], q[j]));
    const int64_t window = (mode_ & kFading) != 0 ? 64 : 1024;
    if ((mode_ & kByColumn) != 0) {
      const auto share = static_cast<int32_t>(32768 / std::min(row + 1 + kColumnPrior, window));
      for (size_t j = 0; j < spreads_.size(); ++j) spreads_[j] += (magnitude(coded_[j]) - spreads_[j]) * share >> 15;
    }
    const auto share = static_cast<int32_t>(32768 / std::min<int64_t>(row + 1 + kColumnPrior, kCentreWindow));
    for (size_t j = 0; j < centres_.size(); ++j) centres_[j] += ((q[j] << kMeanBits) - centres_[j]) * share >> 15;
  }

  int mode_, base_class_;
  int32_t base_;
  float relative_;
  std::vector<int32_t> spreads_, centres_;  // per column, units of 2^-13
  std::vector<uint8_t> states_;             // per column, of a trellis
  std::vector<int8_t> coded_;               // one row of d
};

}  // namespace fairway
