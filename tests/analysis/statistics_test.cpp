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
  const TTest test = t_test(welch_difference(kPr1019Bpb, kPr549Bpb));
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
  EXPECT_TRUE(is_record(welch_difference(clear, base)));
  EXPECT_FALSE(is_record(welch_difference(small, base)));  // 0.004 nats
  EXPECT_FALSE(is_record(welch_difference(noisy, base)));  // 0.013 nats, but not significant
  EXPECT_FALSE(is_record(welch_difference(base, clear)));
  EXPECT_FALSE(is_record(welch_difference(kPr1105Nats, kPr1019Nats)));  // 0.0037 nats
}

TEST(Record, TheShiftedTestIsOneSidedAboutTheMargin) {
  const std::array base{1.000, 1.001, 0.999}, clear{0.990, 0.991, 0.989};
  EXPECT_LT(margin_test(welch_difference(clear, base), 0.005).p, 0.01);
  EXPECT_NEAR(margin_test(welch_difference(clear, base), 0.010).p, 0.5, 1e-9);
  EXPECT_GT(margin_test(welch_difference(clear, base), 0.015).p, 0.99);
}

TEST(Paired, UsesTheDifferencesAlone) {
  const std::array seeds{1.0, 2.0, 3.0, 4.0}, better{0.9, 1.88, 2.91, 3.89};
  const TTest test = t_test(paired_difference(better, seeds));
  EXPECT_EQ(test.df, 3);
  EXPECT_NEAR(test.t, -0.105 / (std::sqrt(sample_variance(std::array{-0.1, -0.12, -0.09, -0.11})) / 2), 1e-9);
  EXPECT_LT(test.p, 0.001);
  EXPECT_GT(t_test(welch_difference(better, seeds)).p, 0.9);
}

// Better by 0.006, each seed by nearly as much: the pairs show more than 0.005, the two sets alone do not.
TEST(Paired, TheMarginTestUsesThePairsToo) {
  const std::array base{1.00, 1.01, 1.02, 1.03}, better{0.9939, 1.0041, 1.0140, 1.0240};
  EXPECT_LT(margin_test(paired_difference(better, base), kRecordNats).p, 0.001);
  EXPECT_GT(margin_test(welch_difference(better, base), kRecordNats).p, 0.4);
  EXPECT_TRUE(is_record(paired_difference(better, base)));
  EXPECT_FALSE(is_record(welch_difference(better, base)));
}

TEST(StudentT, QuantilesInvertTheDistribution) {
  for (const double df : {1.0, 2.0, 3.306, 30.0, 1e6})
    for (const double p : {0.005, 0.025, 0.2, 0.5, 0.8, 0.975, 0.995})
      EXPECT_NEAR(student_t_cdf(student_t_quantile(p, df), df), p, 1e-10) << p << " " << df;
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.302652729911275, 1e-9);  // tables
  EXPECT_NEAR(student_t_quantile(0.975, 1e8), 1.959963984540054, 1e-6);
}

TEST(Interval, TouchesZeroExactlyWhereTheTestGivesItsLevel) {
  const double t = student_t_quantile(0.975, 5);
  const Difference edge{.value = t * 0.25, .error = 0.25, .df = 5};
  EXPECT_NEAR(interval_of(edge).low, 0, 1e-12);
  EXPECT_NEAR(interval_of(edge).high, 2 * edge.value, 1e-12);
  EXPECT_NEAR(t_test(edge).p, 1 - kConfidence, 1e-12);
}

TEST(Welch, SetsWithoutSpread) {
  const std::array one{1.0, 1.0}, two{2.0, 2.0};
  EXPECT_EQ(t_test(welch_difference(one, one)).p, 1);
  EXPECT_EQ(t_test(welch_difference(one, two)).p, 0);
  EXPECT_TRUE(std::isinf(t_test(welch_difference(one, two)).t));
}

}  // namespace
}  // namespace fairway
