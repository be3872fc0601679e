#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fairway {
namespace {

using Block = std::array<uint32_t, 4>;

TEST(Philox, MatchesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, SavedStateContinuesTheSequence) {
  Rng rng(42, 3);
  for (int i = 0; i < 7; ++i) rng.next_u64();
  rng.normal();
  Rng copy(0);
  copy.restore(rng.save());
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(rng.normal(), copy.normal());
    EXPECT_EQ(rng.below(1000), copy.below(1000));
  }
  EXPECT_EQ(rng.save(), copy.save());
}

TEST(Rng, SeedsAndStreamsDiffer) {
  EXPECT_NE(Rng(1).next_u64(), Rng(2).next_u64());
  EXPECT_NE(Rng(1, 0).next_u64(), Rng(1, 1).next_u64());
  EXPECT_EQ(Rng(1, 5).next_u64(), Rng(1, 5).next_u64());
}

TEST(Rng, BelowIsUniform) {
  Rng rng(9);
  std::vector<int> counts(7);
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts[rng.below(7)];
  double chi = 0;
  for (const int n : counts) chi += (n - kDraws / 7.0) * (n - kDraws / 7.0) / (kDraws / 7.0);
  EXPECT_LT(chi, 22.5);  // six degrees of freedom, p = 0.001
  for (int i = 0; i < 100; ++i) EXPECT_EQ(rng.below(1), 0U);
}

TEST(Rng, NormalHasUnitMoments) {
  Rng rng(10);
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.normal();
    sum += x, squares += x * x, fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.015);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(fourth / kDraws, 3, 0.15);
}

TEST(Rng, UniformStaysBelowOne) {
  Rng rng(11);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = rng.uniform01();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

TEST(Rng, ShuffleIsAPermutation) {
  std::vector<int> items(100);
  for (int i = 0; i < 100; ++i) items[static_cast<size_t>(i)] = i;
  std::vector<int> shuffled = items;
  Rng(3).shuffle(std::span<int>(shuffled));
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

}  // namespace
}  // namespace fairway
