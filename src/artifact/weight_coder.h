// Our coder for quantized weights: adaptive rANS whose context is the magnitude expected at a place. Expected is the running
// mean of |q| in the column over the rows above, times how the row so far compares with its columns. Row scales equalise rows,
// but columns (hidden units, embedding channels) keep their own spread, which order-0 coding cannot use. A tensor begins with
// the shape that its weights have, in four bytes, or goes on from what the stream has learned. What helps is tried per tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fairway {

template <class Weight>
struct WeightMatrix {
  Weight* q = nullptr;  // (rows, cols)
  int64_t rows = 0, cols = 0;
  int level = 127;       // |q| is at most this
  bool trellis = false;  // down a column q follow a trellis (base/trellis.h)
};
using WeightBlock = WeightMatrix<const int8_t>;
using WeightTarget = WeightMatrix<int8_t>;  // to decode into

// `bits`, where given, gets what each block took, header and all but the coder's state.
std::string encode_weights(std::span<const WeightBlock> blocks, std::vector<double>* bits = nullptr);
// Fills the blocks. InputError, beginning with `where`, when the bytes are not what encode_weights makes for these sizes.
void decode_weights(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where);

}  // namespace fairway
