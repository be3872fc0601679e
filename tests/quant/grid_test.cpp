// Scales and rounding against the vectors of scoring spec §11.3 and §11.4 and the self-checks (v) and (vi) of §4.12b.
#include "quant/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "quant/problem.h"
#include "quant/quantized_model.h"

namespace fairway::quant_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ThreadPool& pool() {
  static ThreadPool team(2);
  return team;
}

TEST(Grid, QuantilesInterpolateBetweenRanks) {
  const std::vector<std::pair<double, double>> expected{{0.999, 2.1944},     {0.9995, 2.1972}, {0.9999, 2.19944},
                                                        {0.99999, 2.199944}, {1.0, 2.2},       {0.0, 0.1}};
  for (const auto& [fraction, value] : expected) {
    std::vector<float> magnitudes{.1F, .5F, .2F, .9F, 1.4F, .3F, .7F, 2.2F};
    EXPECT_NEAR(quantile(magnitudes, fraction), value, 1e-6) << fraction;
  }
}

TEST(Grid, ThePercentileRuleNeverClipsBelowOne) {
  const Matrix w = gaussian(5, 300, 1);
  ASSERT_LT(*std::max_element(w.values.begin(), w.values.end()), 1.0F);
  for (const double percentile : kClipPercentiles)
    for (const int bits : {5, 6, 8})
      for (const uint16_t scale : percentile_scales(w.view(), percentile, bits, pool()))
        EXPECT_EQ(scale, to_half(static_cast<float>(1.0 / largest_level(bits)))) << percentile;
  const std::vector<float> large{.1F, .5F, .2F, .9F, 1.4F, .3F, .7F, -2.2F};
  EXPECT_EQ(percentile_scales({large.data(), 1, 8}, 0.999, 6, pool())[0], to_half(static_cast<float>(2.1944 / 31)));
}

TEST(Grid, SdclipGivesTheVectorOfTheSpec) {
  const std::vector<float> row{.10F, -.05F, .22F, -.31F, .07F, 0, .15F, -.12F};
  EXPECT_NEAR(unbiased_deviation(row), 0.1683322, 1e-7);
  const HalfScales scales = sdclip_scales({row.data(), 1, 8}, 12.85, 6, pool());
  EXPECT_NEAR(from_half(scales[0]), 0.06976318, 1e-8);
  EXPECT_THAT(round_to_grid({row.data(), 1, 8}, scales, 6, pool()), ElementsAre(1, -1, 3, -4, 1, 0, 2, -2));
}

TEST(Grid, HalvesRoundToEvenAndLevelsAreClamped) {
  const std::vector<float> row{0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 40, -40, 30.5F};
  EXPECT_THAT(round_to_grid({row.data(), 1, 8}, {to_half(1)}, 6, pool()), ElementsAre(0, 2, 2, 0, -2, 31, -31, 30));
}

TEST(Grid, RowsShareAStepUnlessTheirLargestWeightLiesBeyondInt8) {
  const std::vector<float> w{0.5F, -0.5F, 0.02F, 0.02F, 3, -1, 0, 0};
  const HalfScales scales = shared_step_scales({w.data(), 4, 2}, 0.01, {}, pool());
  const uint16_t shared = to_half(0.01F), reaching = to_half(static_cast<float>(1.05 * 3 / 127));
  EXPECT_THAT(scales, ElementsAre(shared, shared, reaching, 0));
  EXPECT_NEAR(typical_magnitude({w.data(), 2, 2}, pool()), 0.1, 1e-8);  // the root of 0.5·0.02
  EXPECT_NEAR(typical_magnitude({w.data(), 4, 2}, pool()), std::cbrt(0.01 * std::sqrt(5.0)), 1e-8)
      << "a row of zeros does not count";
  EXPECT_EQ(typical_magnitude({w.data() + 6, 1, 2}, pool()), 0);
}

TEST(Grid, HessianSdclipWidensImportantRows) {
  const std::vector<float> w{0.1F, -0.1F, 0.1F, -0.1F, 0.2F, -0.2F, 0.2F, -0.2F};
  const std::vector<double> flat{2, 2, 2, 2};
  const HalfScales plain = sdclip_scales({w.data(), 2, 4}, 10, 6, pool());
  const HalfScales none = hessian_sdclip_scales({w.data(), 2, 4}, {10, 0, flat}, 6, pool());
  const HalfScales some = hessian_sdclip_scales({w.data(), 2, 4}, {10, 0.3, flat}, 6, pool());
  EXPECT_EQ(none, plain);
  // r = (2/3, 4/3): the first row's factor is 1 − 0.3/3, the second's 1 + 0.3/3.
  EXPECT_NEAR(from_half(some[0]) / from_half(plain[0]), 0.9, 1e-3);
  EXPECT_NEAR(from_half(some[1]) / from_half(plain[1]), 1.1, 1e-3);
}

TEST(Grid, RowsThatAreZeroConstantOrOneColumnSurvive) {
  const std::vector<float> w{0, 0, 0, 0, 0.25F, 0.25F, 0.25F, 0.25F, -3e-9F, 3e-9F, -3e-9F, 3e-9F};
  const MatrixView view{w.data(), 3, 4};
  for (const HalfScales& scales : {sdclip_scales(view, 12.85, 6, pool()), absmax_scales(view, 6, pool())}) {
    const std::vector<int8_t> q = round_to_grid(view, scales, 6, pool());
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(q[i], 0);
      EXPECT_EQ(q[4 + i], 31);
      EXPECT_NEAR(from_half(scales[1]) * q[4 + i], 0.25, 2e-4);
      EXPECT_EQ(q[8 + i], 0) << "a step below the smallest half makes the row zero";
    }
  }
  const std::vector<float> column{0.5F, -0.25F, 0};
  const HalfScales scales = sdclip_scales({column.data(), 3, 1}, 12.85, 6, pool());
  EXPECT_THAT(round_to_grid({column.data(), 3, 1}, scales, 6, pool()), ElementsAre(31, -31, 0));
}

TEST(Grid, WeightsThatAreNotFiniteAreRefusedWithTheirPlace) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1e5F}) {
    std::vector<float> w(6, 0.5F);
    w[4] = bad;
    try {
      require_finite({w.data(), 2, 3}, "bank.up[3]");
      FAIL() << bad;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("bank.up[3]: the weight at row 1, column 1 is"));
    }
  }
}

// (v) the histogram's entropy is 2.047 + log2(deviation/step); (vi) nothing is clipped under SDClip.
TEST(Grid, EntropyAndClippingOfGaussianWeightsAreAsPredicted) {
  struct Setting {
    int bits;
    double k, measured;
  };
  const Matrix w = gaussian(256, 2048, 3);
  for (const Setting& s : {Setting{6, 12.85, 3.328}, Setting{6, 11.5, 3.486}, Setting{7, 14, 4.220}, Setting{8, 20, 4.715}}) {
    const std::vector<int8_t> q = round_to_grid(w.view(), sdclip_scales(w.view(), s.k, s.bits, pool()), s.bits, pool());
    const double predicted = 2.047 + std::log2(largest_level(s.bits) / s.k);
    EXPECT_NEAR(entropy(q) / predicted, 1, 0.03) << s.bits << " " << s.k;
    EXPECT_NEAR(entropy(q), s.measured, 0.005) << s.bits << " " << s.k;
    EXPECT_EQ(std::count_if(q.begin(), q.end(), [&](int8_t x) { return std::abs(x) == largest_level(s.bits); }), 0);
  }
  // Percentile rule with weights large enough that the floor does not act.
  const Matrix large = gaussian(256, 2048, 4, 2);
  for (const double percentile : {0.9995, 0.9999, 0.99999}) {
    const std::vector<int8_t> q =
        round_to_grid(large.view(), percentile_scales(large.view(), percentile, 6, pool()), 6, pool());
    const auto edge = std::count_if(q.begin(), q.end(), [](int8_t x) { return std::abs(x) == 31; });
    const double share = static_cast<double>(edge) / static_cast<double>(q.size());
    EXPECT_TRUE(share >= 1e-5 && share <= 2e-3) << percentile << " " << share;
  }
}

}  // namespace
}  // namespace fairway::quant_test
