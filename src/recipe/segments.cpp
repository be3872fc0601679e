#include "recipe/segments.h"

#include "base/error.h"

namespace fairway {

void segment_starts(std::span<const int32_t> tokens, int64_t length, const SegmentRule& rule, std::span<int32_t> out) {
  const auto count = static_cast<int64_t>(tokens.size());
  FAIRWAY_ASSERT(out.size() == tokens.size() && count % length == 0, "segment starts of broken rows");
  for (int64_t row = 0; row < count; row += length) {
    int64_t start = row;
    for (int64_t i = row; i < row + length; ++i) {
      const bool begins = tokens[static_cast<size_t>(i)] == rule.bos || i - start == rule.longest;
      start = begins ? i : start;
      out[static_cast<size_t>(i)] = static_cast<int32_t>(start);
    }
  }
}

}  // namespace fairway
