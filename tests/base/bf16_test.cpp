#include "base/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fairway {
namespace {

TEST(Bf16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bf16(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(through_bf16(value))) << bits;
    } else {
      ASSERT_EQ(to_bf16(value), bits);
    }
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(through_bf16(1.0F + 0x1p-8F), 1.0F);                   // a tie: 1.0 is even
  EXPECT_EQ(through_bf16(1.0F + 0x1p-8F + 0x1p-23F), 1.0078125F);  // just above it
  EXPECT_EQ(through_bf16(1.0078125F + 0x1p-8F), 1.015625F);        // a tie: upwards to even
  EXPECT_EQ(through_bf16(-1.0F - 0x1p-8F), -1.0F);
  EXPECT_EQ(to_bf16(-0.0F), 0x8000);
  EXPECT_EQ(through_bf16(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
}

// All of its bits set: a carry would make it −0.
TEST(Bf16, NotANumberStaysSo) {
  EXPECT_TRUE(std::isnan(through_bf16(std::bit_cast<float>(0x7FFFFFFFU))));
  EXPECT_TRUE(std::isnan(through_bf16(std::bit_cast<float>(0xFF800001U))));
}

}  // namespace
}  // namespace fairway
