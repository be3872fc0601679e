// Rates on Hessians whose answer is known: equal columns gain nothing, two groups of columns what the formula says, and no
// quantizer is below the bound.
#include "analysis/rate_curves.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "score/tiny_score.h"

namespace fairway {
namespace {

std::vector<double> diagonal_values(int64_t side, double odd) {
  std::vector<double> values(static_cast<size_t>(side * side), 0.0);
  for (int64_t i = 0; i < side; ++i) values[static_cast<size_t>(i * side + i)] = i % 2 == 0 ? 1.0 : odd;
  return values;
}

double gain_of(double odd) {
  Queue queue(1);
  OpRunner runner(queue);
  return column_gain(factorize(runner, {32, diagonal_values(32, odd)}, {.share = 0}));
}

TEST(RateCurves, GainOfColumnsIsThatOfTheFormula) {
  EXPECT_NEAR(gain_of(1), 0, 1e-6);
  EXPECT_NEAR(gain_of(16), 0.5 * std::log2(8.5 / 4), 1e-6);
}

TEST(RateCurves, GaussianWeightsTakeTheRoundingLossAndNoLessThanTheBound) {
  Recipe recipe = score_test::tiny_recipe(false);
  recipe.quant.damping = 1e-9;
  const auto table = parameter_table(recipe);
  ParamStore weights(table, ParamStore::Gradients::none);
  Rng rng(3);
  const Tensor all = weights.flat_values();
  for (int64_t i = 0; i < all.numel(); ++i) reinterpret_cast<float*>(all.data)[i] = 0.02F * static_cast<float>(rng.normal());
  Queue queue(2);
  HessianStore hessians(queue);
  for (const TensorPlan& plan : tensor_plans(weights, recipe))
    if (!plan.point.empty() && hessians.find(plan.point) == nullptr)
      hessians.put(plan.point, plan.weight.cols, diagonal_values(plan.weight.cols, 16));
  const RateReport report = measure_rates(weights, recipe, hessians, queue, {});
  ASSERT_FALSE(report.tensors.empty());
  for (const RateCurve& curve : report.tensors) {
    EXPECT_NEAR(curve.column_gain, 0.5 * std::log2(8.5 / 4), 1e-4) << curve.name;
    for (size_t i = 0; i < curve.points.size(); ++i) {
      const RatePoint& point = curve.points[i];
      EXPECT_TRUE(i == 0 || (point.bits < curve.points[i - 1].bits && point.error > curve.points[i - 1].error)) << curve.name;
      const bool large = curve.rows * curve.cols >= 4096;  // of fewer weights the entropy is too low
      EXPECT_TRUE(!large || point.bits > point.bound) << curve.name;
    }
  }
  // At a fine step rounding is off the bound by ½·log2(2πe/12) and by the columns' gain; the entropy of few weights lies lower.
  const RatePoint& fine = report.all[1];
  EXPECT_NEAR(fine.bits - fine.bound, 0.2546 + report.column_gain, 0.25);
}

}  // namespace
}  // namespace fairway
