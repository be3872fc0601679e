// Tables of the weight coder since version 3. A class of expected magnitude, eight to the octave, has fixed frequencies out of
// 2^11: those of two Gaussians of equal share, so far apart, at the class's own width. Nothing is learned while weights are
// decoded, so that sixteen states can go in lockstep. Levels too rare for a share of 2^11 are one symbol, the escape; which one
// it was is told apart, by a model that learns.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "artifact/symbol_model.h"

namespace fairway {

inline constexpr int kLaneScaleBits = 11;
inline constexpr uint32_t kLaneScale = 1U << kLaneScaleBits;
inline constexpr int kLaneClasses = 64, kMiddleClass = kLaneClasses / 2;  // the tensor's own width
inline constexpr int kClassesPerOctave = 8;
inline constexpr int kEscape = -128;
inline constexpr int kMostLevel = 127;

struct LaneShape {
  static constexpr int kWidthBits = 9, kSpreadBits = 3, kClassBits = 6;
  int width = 0;                                      // standard deviation of the middle class: 2^(width/32 − 6)
  int spread = 0;                                     // one of kLaneSpreads
  int largest = 0;                                    // |q| is at most this
  int lowest = kMiddleClass, highest = kMiddleClass;  // classes that have a table
  bool trellis = false;                               // known of the tensor, not stored
  bool operator==(const LaneShape&) const = default;
};
inline constexpr std::array<int, 8> kLaneSpreads{0, 3, 6, 9, 12, 16, 21, 28};  // 32nds of an octave to either side
inline constexpr int kLaneWidths = 1 << LaneShape::kWidthBits;
int width_of_class(int width, int index);  // that of a class beside the middle one's

struct LaneRange {
  uint16_t start = 0, freq = 0;  // a symbol that is the only one has all 2^11
};
struct LaneClass {
  int core = 0;                         // |q| up to this have ranges of their own
  std::array<LaneRange, 256> ranges{};  // by q + 128; the first is the escape's
};
// Under a trellis a weight is known to be even or odd, and each level stands for two steps. The escapes are then the four
// lowest symbols, so that they too are even or odd and have the second bit of what they stand for.
enum class LaneLevels : uint8_t { even, odd, all };
using LaneShares = std::array<double, kMostLevel + 1>;  // of |q| = 0, 1, …; those of ±q are equal
LaneShares lane_shares(int width, int spread, int largest, LaneLevels levels = LaneLevels::all);
LaneClass lane_class(int width, int spread, int largest, LaneLevels levels = LaneLevels::all);

// What decoding looks up: q in the lowest byte, then 12 bits of frequency, then the slot's place in its range.
class LaneTables {
 public:
  explicit LaneTables(const LaneShape& shape);
  const uint32_t* entries() const { return entries_.data(); }  // (classes, 2^11) from shape.lowest on; of a trellis (…, 2, …)
  const LaneClass& of(int index, int q) const { return classes_[static_cast<size_t>(trellis_ ? 2 * index + (q & 1) : index)]; }
  int last() const { return last_; }
  bool trellis() const { return trellis_; }

 private:
  bool trellis_;
  int last_;
  std::vector<LaneClass> classes_;
  std::vector<uint32_t> entries_;
};

// Magnitudes beyond a class's core, counted from there.
class EscapeModel {
 public:
  EscapeModel(int largest, FineModel::Use use);
  FineModel& model() { return model_; }
  void note(int symbol) {
    model_.note(symbol);
    if (model_.due()) model_.refresh(alphabet_, use_);
  }

 private:
  FineModel::Alphabet alphabet_;
  FineModel::Use use_;
  FineModel model_;
};

}  // namespace fairway
