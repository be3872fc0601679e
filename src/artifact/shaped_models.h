// Models of the weight coder since version 2. A tensor names the shape its weights have as a whole: the mean of |q| on a grid
// of 32 to the octave, and how far two Gaussians of equal share lie apart, which gives the heavier tails that real weights
// have. A class of expected magnitude, told relative to that mean, begins with the shape at its own mean as a prior that counts
// for `strength` weights, and learns from there. So little is paid for learning what a shape already says. Under a trellis a
// class has two models, of even and of odd values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "artifact/symbol_model.h"
#include "artifact/weight_context.h"

namespace fairway {

struct WeightShape {
  static constexpr int kScaleBits = 9, kSpreadBits = 3, kStrengthBits = 3;
  int scale = 0;     // mean |q| is 2^(scale/32 − 9)
  int spread = 0;    // one of kSpreads
  int strength = 0;  // one of kStrengths
  bool operator==(const WeightShape&) const = default;
};
inline constexpr std::array<int, 8> kSpreads{0, 3, 6, 9, 12, 16, 21, 28};  // 32nds of an octave to either side
inline constexpr std::array<double, 8> kStrengths{4, 16, 64, 256, 1024, 4096, 16384, 65536};
inline constexpr int kMeanClass = kClasses / 2;  // of weights expected at the tensor's mean

using Shares = std::array<double, kZeroSymbol + 1>;  // of |q| = 0, 1, …; those of ±q are equal
Shares shares_of(int scale, int spread);             // a bin holds what lies within half a level of it
WeightWalk::Base base_of(const WeightShape& shape);
int nearest_scale(double mean);  // for encoders

class ShapedModels {
 public:
  explicit ShapedModels(FineModel::Use use) : use_(use) { places_.fill(0); }
  FineModel& operator[](int index) { return models_[places_[static_cast<size_t>(index)]]; }
  bool any() const { return known_ != 0; }
  void begin_shape(const WeightShape& shape);     // forgets everything
  void begin_tensor(int largest, bool trellis) {  // |q| at most `largest`; goes on from what was learned
    alphabet_ = {kZeroSymbol - largest, kZeroSymbol + largest};
    if (trellis != trellis_ && known_ != 0) begin_shape(shape_);
    trellis_ = trellis;
    ready_ = 0;
  }
  void require(uint64_t classes) {
    if ((classes & ~ready_) != 0) prepare(classes & ~ready_);
  }
  void adapt();

 private:
  void prepare(uint64_t classes);
  void begin_model(int context, const Shares& shares);

  FineModel::Use use_;
  FineModel::Alphabet alphabet_;
  WeightShape shape_;
  bool trellis_ = false;
  uint64_t known_ = 0, ready_ = 0;  // begun at all; refreshed for this tensor's alphabet
  std::array<uint8_t, 2 * kClasses> places_;
  std::vector<FineModel> models_;  // those begun
};

}  // namespace fairway
