// One example of an op: its attributes and how each input is shaped and filled. The same case serves the gradient check, the
// comparison of backends and the check that the number of threads changes nothing. Every entry of ops.def must have cases.
#pragma once

#include <string>
#include <vector>

#include "ops/all_ops.h"

namespace fairway::ops_test {

enum class Content : uint8_t { absent, uniform, shares, factor, index, segments, rope, scalars };

struct Slot {  // one input
  Content content = Content::absent;
  Shape shape{};
  double low = 0,
         high = 0;   // of uniform; index: from low up to below high; segments: high is the mean length, low the first one's
  bool f64 = false;  // stays f64 when the case runs in f32
  bool differentiated() const { return content == Content::uniform && !f64; }
};

inline Slot uniform(Shape shape, double low = -1, double high = 1) { return {Content::uniform, shape, low, high}; }
inline Slot uniform_f64(Shape shape, double low, double high) { return {Content::uniform, shape, low, high, true}; }
// Of distributions, which have no gradient; they sum to about 1.
inline Slot shares(int64_t rows, int64_t count) {
  return {Content::shares, {rows, count}, 0, 2.0 / static_cast<double>(count)};
}
// A triangle as GPTQ's are: its diagonal outweighs what stands beside it.
inline Slot factor(int64_t side) { return {Content::factor, {side, side}, 0.5, 1.0}; }
inline Slot indices(int64_t rows, int64_t limit, int64_t lowest = 0) {
  return {Content::index, {rows}, static_cast<double>(lowest), static_cast<double>(limit)};
}
// About a fourth are negative, for none.
inline Slot hints(int64_t rows, int64_t vocab) {
  return {Content::index, {rows}, -static_cast<double>(vocab) / 3, static_cast<double>(vocab)};
}
inline Slot segments(int64_t rows, double length, double first = 0) { return {Content::segments, {rows}, first, length}; }
inline Slot rope(int64_t positions, int64_t rotated) { return {Content::rope, {positions, rotated}}; }
inline Slot step_scalars() { return {Content::scalars, {kStepScalars}, 0, 0, true}; }
inline Slot absent() { return {}; }

// f32 numbers (so that f32 and f64 runs see the same inputs), the same for the same seed.
std::vector<double> content_of(const Slot& slot, uint64_t seed);

// "op [2, 3] - [4]": the shapes of the inputs.
std::string label_of(std::string_view op, const std::vector<Slot>& in);

struct Allowed {  // error of an f32 run: Σ(a−b)² <= nmse·Σb² + n·noise²
  double nmse = 1e-12;
  double noise = 0;  // only for results that cancel to zero
};

template <class Op>
struct OpCase {
  Op op;
  std::vector<Slot> in;
  Allowed allowed{};
  std::string label() const { return label_of(Op::name, in); }
};

// Sizes around the vector widths and tiles of every backend.
inline const std::vector<int64_t> kSizes{1, 2, 3, 7, 13, 16, 17, 31, 33, 64, 65};

#define FAIRWAY_OP(Op) std::vector<OpCase<Op>> cases(const Op&);
#define FAIRWAY_PLAIN_OP(Op) FAIRWAY_OP(Op)
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

}  // namespace fairway::ops_test
