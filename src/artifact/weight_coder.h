// Our coder for quantized weights: adaptive rANS whose context is the magnitude expected at a place. Expected is the running
// mean of |q| in the column over the rows above, times how the row so far compares with its columns. Row scales equalise rows,
// but columns (hidden units, embedding channels) keep their own spread, which order-0 coding cannot use. The adaptive counts
// run on from tensor to tensor of a stream, so learning is paid once. What helps is tried per tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fairway {

struct WeightBlock {
  int8_t* q = nullptr;  // (rows, cols)
  int64_t rows = 0, cols = 0;
  int level = 127;  // |q| is at most this
};

std::string encode_weights(std::span<const WeightBlock> blocks);
// Fills the blocks. InputError, beginning with `where`, when the bytes are not what encode_weights makes for these sizes.
void decode_weights(std::string_view bytes, std::span<const WeightBlock> blocks, const std::string& where);

}  // namespace fairway
