// Segments of packed documents (spec A.1), for whoever trains, validates, scores or compares on them: a segment begins at a
// row's first token, at every start token, and every `longest` tokens after that.
#pragma once

#include <cstdint>
#include <span>

namespace fairway {

struct SegmentRule {
  int32_t bos = 1;
  int64_t longest = 0;  // tokens of a segment; longer documents are cut
};

// For each token of rows of `length` the flat index of the first token of its segment.
void segment_starts(std::span<const int32_t> tokens, int64_t length, const SegmentRule& rule, std::span<int32_t> out);

}  // namespace fairway
