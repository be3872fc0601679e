// Functions without the mathematics library: near the library's everywhere, and the same bits as when these were written.
#include "base/plain_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>

namespace fairway {
namespace {

double off(double have, double want) { return std::abs(have - want) / std::max(std::abs(want), 1e-300); }

TEST(PlainMath, ExpIsNearTheLibrarys) {
  for (double x = -740; x < 709; x += 0.3717) ASSERT_LE(off(plain_exp(x), std::exp(x)), x < -708 ? 1e-2 : 4e-16) << x;
  EXPECT_EQ(plain_exp(0), 1);
  EXPECT_EQ(plain_exp(-1000), 0);
  EXPECT_EQ(plain_exp(1000), HUGE_VAL);
  EXPECT_TRUE(std::isnan(plain_exp(std::numeric_limits<double>::quiet_NaN())));
}

TEST(PlainMath, LogIsNearTheLibrarys) {
  for (double x = 1e-6; x < 1e7; x *= 1.0137)
    ASSERT_LE(std::abs(plain_log(x) - std::log(x)), 4e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
  EXPECT_EQ(plain_log(1), 0);
}

TEST(PlainMath, SineAndCosineAreNearTheLibrarys) {
  for (double x = -70000; x < 70000; x += 0.7391) {
    const SineCosine at = plain_sine_cosine(x);
    ASSERT_LE(std::abs(at.sine - std::sin(x)), 1e-15) << x;
    ASSERT_LE(std::abs(at.cosine - std::cos(x)), 1e-15) << x;
  }
}

TEST(PlainMath, HasTheBitsItHadElsewhere) {
  EXPECT_EQ(std::bit_cast<uint64_t>(plain_exp(-1.2345)), 0x3FD29F6B7BFE469DU);
  EXPECT_EQ(std::bit_cast<uint64_t>(plain_log(10000)), 0x40226BB1BBB55516U);
  EXPECT_EQ(std::bit_cast<uint64_t>(plain_sine_cosine(2047.5).sine), 0xBFE75CA75B2251DAU);
}

}  // namespace
}  // namespace fairway
