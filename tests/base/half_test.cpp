// Halves against the compiler's own conversion: every half back and forth, and the neighbourhood of every rounding tie.
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace fairway {
namespace {

#if defined(__aarch64__)
using CompilerHalf = __fp16;  // g++ 12 has the other name on x86-64 only
#else
using CompilerHalf = _Float16;
#endif

uint16_t compiler_half(float value) {
  const auto half = static_cast<CompilerHalf>(value);
  uint16_t bits = 0;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

TEST(Half, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t half = 0; half < 0x10000; ++half) {
    const float value = from_half(static_cast<uint16_t>(half));
    if (std::isnan(value)) {
      EXPECT_GT(half & 0x7FFF, 0x7C00U);
    } else {
      ASSERT_EQ(to_half(value), half);
    }
  }
}

TEST(Half, RoundsLikeTheCompilerBesideEveryTie) {
  for (uint32_t half = 0; half < 0x7BFF; ++half) {
    const float low = from_half(static_cast<uint16_t>(half)), high = from_half(static_cast<uint16_t>(half + 1));
    const float tie = low + (high - low) / 2;
    for (const float value : {tie, std::nextafter(tie, low), std::nextafter(tie, high)}) {
      ASSERT_EQ(to_half(value), compiler_half(value)) << value;
      ASSERT_EQ(to_half(-value), compiler_half(-value)) << -value;
    }
  }
}

TEST(Half, OverflowsToInfinityAndKeepsNotANumber) {
  EXPECT_EQ(to_half(65519.0F), 0x7BFF);
  EXPECT_EQ(to_half(65520.0F), 0x7C00);
  EXPECT_EQ(to_half(-INFINITY), 0xFC00);
  EXPECT_TRUE(std::isnan(from_half(to_half(NAN))));
}

}  // namespace
}  // namespace fairway
