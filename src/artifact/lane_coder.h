// Our coder for quantized weights since version 3: rANS with fixed tables, made to be decoded quickly. A stream is cut into
// chunks of whole tensors that are decoded apart from each other. In a large chunk sixteen rows go in lockstep, each with a
// state of its own in [2^16, 2^32) and words of 16 bits from one list; a small one has a single state, which costs two bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/weight_coder.h"

namespace fairway {

std::string encode_lanes(std::span<const WeightBlock> blocks, std::vector<double>* bits = nullptr);  // as encode_weights
// The same in parts that can be coded at once.
struct LaneCode {
  std::string plans, lanes;
  std::vector<double> bits;  // of each tensor, where they are to be told
};
std::vector<std::span<const WeightBlock>> lane_parts(std::span<const WeightBlock> blocks);
LaneCode encode_lane_part(std::span<const WeightBlock> part, bool tell_bits = false);
std::string joined_lanes(std::span<const LaneCode> parts);

struct LaneChunk {
  std::string_view plans;  // how tensors are coded, escapes; in a small chunk also the weights
  std::string_view lanes;  // states and words
  bool lockstep = false;
  std::span<const WeightTarget> blocks;  // whose sizes count, not their memory
};
// Without decoding. InputError, beginning with `where`, when sizes do not add up; so do the others.
std::vector<LaneChunk> lane_chunks(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where);
void decode_lane_chunk(const LaneChunk& chunk, std::span<const WeightTarget> into, const std::string& where);
void decode_lanes(std::string_view bytes, std::span<const WeightTarget> blocks, const std::string& where);

}  // namespace fairway
