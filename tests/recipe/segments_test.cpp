#include "recipe/segments.h"

#include <gtest/gtest.h>

#include <vector>

namespace fairway {
namespace {

TEST(Segments, BeginAtRowsDocumentsAndLimits) {
  const std::vector<int32_t> tokens = {5, 5, 1, 5, 5, 5, 5, 1, 5, 1, 1, 5, 5, 5, 5, 5};
  std::vector<int32_t> starts(16);
  segment_starts(tokens, 8, {.bos = 1, .longest = 3}, starts);
  EXPECT_EQ(starts, (std::vector<int32_t>{0, 0, 2, 2, 2, 5, 5, 7, 8, 9, 10, 10, 10, 13, 13, 13}));
}

}  // namespace
}  // namespace fairway
