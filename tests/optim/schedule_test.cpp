// Learning-rate multiplier, momentum and stages over a run (spec §10.2, §8.1, §5.1).
#include "optim/schedule.h"

#include <gtest/gtest.h>

namespace fairway {
namespace {

Progress at_step(int64_t step, int64_t total) { return {.clock = ScheduleClock::steps, .step = step, .total_steps = total}; }
Progress at_time(double elapsed, double budget, int64_t step) {
  return {.clock = ScheduleClock::time, .step = step, .elapsed = elapsed, .budget = budget};
}

TEST(Progress, FractionAndEndBySteps) {
  EXPECT_EQ(at_step(0, 40).fraction(), 0);
  EXPECT_EQ(at_step(10, 40).fraction(), 0.25);
  EXPECT_EQ(at_step(40, 40).fraction(), 1);
  EXPECT_FALSE(at_step(39, 40).finished());
  EXPECT_TRUE(at_step(40, 40).finished());
}

TEST(Progress, AStepThatMayNotFitIsNotBegun) {
  Progress at = at_time(0, 10, 0);
  at.took(4);  // the next one is taken to need 5
  at.step = 1;
  EXPECT_FALSE(at.finished());
  at.took(4);
  at.step = 2;
  EXPECT_TRUE(at.finished());
  EXPECT_LE(at.elapsed, at.budget);
}

TEST(Progress, NoLengthOfStepsEndsPastTheBudget) {
  for (const double step : {0.01, 0.37, 1.0, 3.3, 9.9}) {
    Progress at = at_time(0, 10, 0);
    while (!at.finished()) {
      at.took(step * (at.step % 7 == 3 ? 1.2 : 1.0));
      ++at.step;
    }
    EXPECT_LE(at.elapsed, at.budget) << step;
    EXPECT_GE(at.elapsed, at.budget - 2.5 * step) << step << ": time was left unused";
  }
}

TEST(Progress, OneSlowStepIsForgotten) {
  Progress at = at_time(0, 1000, 0);
  at.took(30);
  for (at.step = 1; at.step < 60; ++at.step) at.took(1);
  EXPECT_LT(at.next_step, 1.3);
}

TEST(Progress, AStepLongerThanTheBudgetIsMadeOnce) {
  Progress at = at_time(0, 1, 0);
  EXPECT_FALSE(at.finished());
  at.took(5);
  at.step = 1;
  EXPECT_TRUE(at.finished());
}

TEST(Progress, FractionAndEndByTime) {
  EXPECT_EQ(at_time(0, 600, 0).fraction(), 0);
  EXPECT_EQ(at_time(150, 600, 9).fraction(), 0.25);
  EXPECT_EQ(at_time(700, 600, 9).fraction(), 1);  // the last step may end late
  EXPECT_FALSE(at_time(599.9, 600, 9).finished());
  EXPECT_TRUE(at_time(600, 600, 9).finished());
}

TEST(LearningRate, IterationsByTimeUseTheMeanStep) {
  const ScheduleRecipe rule{.style = ScheduleStyle::iterations, .warmdown_iters = 4000, .floor = 0.05};
  // 87.7 ms a step: the warm-down lasts 350.8 s of 600 s (the spec's own example).
  const auto scale = [&](double elapsed) {
    return learning_rate_scale(rule, at_time(elapsed, 600, static_cast<int64_t>(elapsed / 0.0877 + 0.5)));
  };
  EXPECT_EQ(scale(240), 1);
  EXPECT_NEAR(scale(600 - 350.8 / 2), 0.5, 1e-3);
  EXPECT_EQ(scale(599.9), 0.05);  // the floor
  EXPECT_EQ(scale(601), 0.05);
}

TEST(LearningRate, TheFirstStepHasNoMeanYet) {
  const ScheduleRecipe rule{.style = ScheduleStyle::iterations, .warmdown_iters = 4000};
  EXPECT_EQ(learning_rate_scale(rule, at_time(0, 600, 0)), 1);
  // The quirk of §10.2: one slow first step makes the warm-down look longer than the run.
  EXPECT_NEAR(learning_rate_scale(rule, at_time(0.3, 600, 1)), 599.7 / 1200, 1e-12);
}

TEST(LearningRate, IterationsBySteps) {
  const ScheduleRecipe rule{.style = ScheduleStyle::iterations, .warmdown_iters = 10, .floor = 0.15};
  EXPECT_EQ(learning_rate_scale(rule, at_step(0, 40)), 1);
  EXPECT_EQ(learning_rate_scale(rule, at_step(30, 40)), 1);
  EXPECT_DOUBLE_EQ(learning_rate_scale(rule, at_step(31, 40)), 0.9);
  EXPECT_DOUBLE_EQ(learning_rate_scale(rule, at_step(38, 40)), 0.2);
  EXPECT_EQ(learning_rate_scale(rule, at_step(39, 40)), 0.15);
  EXPECT_EQ(learning_rate_scale(rule, at_step(45, 40)), 0.15);
}

TEST(LearningRate, WarmdownLongerThanTheRunStartsBelowOne) {
  const ScheduleRecipe rule{.style = ScheduleStyle::iterations, .warmdown_iters = 80};
  EXPECT_DOUBLE_EQ(learning_rate_scale(rule, at_step(0, 40)), 0.5);
}

TEST(LearningRate, FractionByStepsAndByTime) {
  const ScheduleRecipe rule{.style = ScheduleStyle::fraction, .warmdown_fraction = 0.85, .floor = 0.1};
  const auto check = [&](double fraction, double expected) {
    EXPECT_NEAR(learning_rate_scale(rule, at_step(static_cast<int64_t>(fraction * 1000 + 0.5), 1000)), expected, 1e-12)
        << fraction;
    EXPECT_NEAR(learning_rate_scale(rule, at_time(fraction * 599.5, 599.5, 7)), expected, 1e-12) << fraction;
  };
  check(0, 1);
  check(0.149, 1);
  check(0.15, 1);
  check(0.575, 0.5);
  check(0.95, 0.1);
  check(1, 0.1);
}

TEST(LearningRate, NoWarmdownIsConstant) {
  for (ScheduleStyle style : {ScheduleStyle::iterations, ScheduleStyle::fraction}) {
    const ScheduleRecipe rule{.style = style, .warmdown_iters = 0, .warmdown_fraction = 0};
    for (int64_t step : {0, 20, 39}) EXPECT_EQ(learning_rate_scale(rule, at_step(step, 40)), 1);
    EXPECT_EQ(learning_rate_scale(rule, at_time(599, 600, 100)), 1);
  }
}

TEST(Momentum, GrowsLinearlyThenStays) {
  const MatrixRecipe rule{.momentum = 0.99, .momentum_start = 0.92, .momentum_warmup_steps = 1500};
  EXPECT_DOUBLE_EQ(muon_momentum(rule, 0), 0.92);
  EXPECT_DOUBLE_EQ(muon_momentum(rule, 750), 0.955);
  EXPECT_DOUBLE_EQ(muon_momentum(rule, 1500), 0.99);
  EXPECT_DOUBLE_EQ(muon_momentum(rule, 100000), 0.99);
  EXPECT_DOUBLE_EQ(muon_momentum({.momentum = 0.9, .momentum_start = 0.5, .momentum_warmup_steps = 0}, 0), 0.9);
}

TEST(Loop, BeginsAtItsFractionAndOnlyWhereThereIsOne) {
  const LoopRecipe loop{.start = 3, .end = 5, .count = 2, .at_fraction = 0.35};
  EXPECT_FALSE(loop_due(loop, at_time(0.3499 * 587, 587, 5)));
  EXPECT_TRUE(loop_due(loop, at_time(0.3501 * 587, 587, 5)));
  EXPECT_FALSE(loop_due(loop, at_step(34, 100)));
  EXPECT_TRUE(loop_due(loop, at_step(35, 100)));
  EXPECT_TRUE(loop_due({.count = 1, .at_fraction = 0}, at_step(0, 100)));
  EXPECT_FALSE(loop_due({.count = 0, .at_fraction = 0}, at_step(50, 100)));
}

}  // namespace
}  // namespace fairway
