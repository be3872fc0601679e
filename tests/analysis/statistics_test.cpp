// Student's t against closed forms and numerical integration; Welch's test on the published seeds (scoring spec §7.5, §9.3b).
#include "analysis/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

namespace fairway {
namespace {

constexpr std::array kPr1019Bpb{1.11508120, 1.11437394, 1.11475014}, kPr549Bpb{1.11922988, 1.12002032, 1.11888882};
constexpr std::array kPr1019Nats{1.88276292, 1.88156874, 1.88220393};
constexpr std::array kPr1105Nats{1.87802, 1.87821, 1.87910}, kPr1105KernelsNats{1.8798, 1.8800, 1.8820};

TEST(StudentT, EqualsItsClosedForms) {
  for (const double t : {-30.0, -3.0, -0.7, 0.0, 0.1, 1.0, 2.5, 12.0}) {
    EXPECT_NEAR(student_t_cdf(t, 1), 0.5 + std::atan(t) / std::numbers::pi, 1e-14);
    EXPECT_NEAR(student_t_cdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)), 1e-14);
    const double s = 1 + t * t / 4;
    EXPECT_NEAR(student_t_cdf(t, 4), 0.5 + 0.375 * t / std::sqrt(s) * (1 - t * t / (12 * s)), 1e-14);
    EXPECT_NEAR(student_t_cdf(t, 1e7), 0.5 * std::erfc(-t / std::numbers::sqrt2), 1e-7);
  }
}

TEST(StudentT, EqualsTheIntegralOfItsDensityForRealDegrees) {
  const double df = 3.306, from = 0, to = 2.75;
  const double scale = std::exp(std::lgamma((df + 1) / 2) - std::lgamma(df / 2)) / std::sqrt(df * std::numbers::pi);
  const auto density = [&](double x) { return scale * std::pow(1 + x * x / df, -(df + 1) / 2); };
  constexpr int kPieces = 2000;
  double integral = density(from) + density(to);
  for (int i = 1; i < kPieces; ++i) integral += (i % 2 == 1 ? 4 : 2) * density(from + (to - from) * i / kPieces);
  integral *= (to - from) / (3 * kPieces);
  EXPECT_NEAR(student_t_cdf(to, df), 0.5 + integral, 1e-10);
}

TEST(Welch, GivesThePublishedValues) {
  const TTest test = welch_test(kPr1019Bpb, kPr549Bpb);
  EXPECT_NEAR(test.t, -11.834, 5e-4);
  EXPECT_NEAR(test.df, 3.306, 5e-4);
  EXPECT_LT(test.p, 0.01);
  EXPECT_NEAR(test.p, 2 * student_t_cdf(test.t, test.df), 1e-15);
}

TEST(Welch, TheMeansOfPublishedSeedsAreThePublishedMeans) {
  EXPECT_NEAR(mean(kPr1019Nats), 1.88218, 5e-6);
  EXPECT_NEAR(mean(kPr1019Bpb), 1.11474, 5e-6);
  EXPECT_NEAR(mean(kPr1105KernelsNats), 1.8806, 5e-5);
  EXPECT_NEAR(mean(kPr1105Nats), 1.8784, 5e-5);
}

TEST(Record, NeedsTheMarginAndTheSignificance) {
  const std::array base{1.000, 1.001, 0.999};
  const std::array clear{0.990, 0.991, 0.989}, small{0.996, 0.997, 0.995}, noisy{0.90, 1.08, 0.98};
  EXPECT_TRUE(is_record(clear, base));
  EXPECT_FALSE(is_record(small, base));  // 0.004 nats
  EXPECT_FALSE(is_record(noisy, base));  // 0.013 nats, but not significant
  EXPECT_FALSE(is_record(base, clear));
  EXPECT_FALSE(is_record(kPr1105Nats, kPr1019Nats));  // 0.0037 nats
}

TEST(Record, TheShiftedTestIsOneSidedAboutTheMargin) {
  const std::array base{1.000, 1.001, 0.999}, clear{0.990, 0.991, 0.989};
  EXPECT_LT(welch_margin_test(clear, base, 0.005).p, 0.01);
  EXPECT_NEAR(welch_margin_test(clear, base, 0.010).p, 0.5, 1e-9);
  EXPECT_GT(welch_margin_test(clear, base, 0.015).p, 0.99);
}

TEST(Paired, UsesTheDifferencesAlone) {
  const std::array seeds{1.0, 2.0, 3.0, 4.0}, better{0.9, 1.88, 2.91, 3.89};
  const TTest test = paired_test(better, seeds);
  EXPECT_EQ(test.df, 3);
  EXPECT_NEAR(test.t, -0.105 / (std::sqrt(sample_variance(std::array{-0.1, -0.12, -0.09, -0.11})) / 2), 1e-9);
  EXPECT_LT(test.p, 0.001);
  EXPECT_GT(welch_test(better, seeds).p, 0.9);
}

TEST(Welch, SetsWithoutSpread) {
  const std::array one{1.0, 1.0}, two{2.0, 2.0};
  EXPECT_EQ(welch_test(one, one).p, 1);
  EXPECT_EQ(welch_test(one, two).p, 0);
  EXPECT_TRUE(std::isinf(welch_test(one, two).t));
}

}  // namespace
}  // namespace fairway
