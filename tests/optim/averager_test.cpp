// EMA and SWA against their closed forms (spec §11.1, §11.2).
#include "optim/averager.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/backends.h"

namespace fairway {
namespace {

class Averages : public testing::Test {
 protected:
  static Recipe recipe(AverageUse use) {
    Recipe out;
    out.average = {.use = use, .ema_decay = 0.9, .swa = {.enabled = use == AverageUse::swa, .every = 3, .lr_mul_below = 0.5}};
    return out;
  }
  // Weights after so many steps.
  static float weight(int64_t step, int64_t i) { return static_cast<float>(std::sin(static_cast<double>(step * 5 + i))); }
  void set(int64_t step) {
    for (int64_t i = 0; i < params_.flat_values().numel(); ++i) params_.flat_values().as<float>()[i] = weight(step, i);
  }
  Queue queue_{1};
  std::unique_ptr<Executor> executor_ = make_ref_executor(queue_);
  ParamStore params_{{{"a", {3, 2}, ParamRole::token}, {"b", {7}, ParamRole::scalar}}, ParamStore::Gradients::none};
};

TEST_F(Averages, EmaIsTheClosedForm) {
  Averager averager(recipe(AverageUse::ema), params_, *executor_);
  set(0);
  averager.start();
  constexpr int kSteps = 12;
  for (int step = 1; step <= kSteps; ++step) {
    set(step);
    averager.observe(step, 1);
  }
  ASSERT_EQ(averager.result_name(), "ema");
  ASSERT_EQ(averager.result().spec, params_.flat_values().spec);
  for (int64_t i = 0; i < params_.flat_values().numel(); ++i) {
    double expected = std::pow(0.9, kSteps) * static_cast<double>(weight(0, i));
    for (int step = 1; step <= kSteps; ++step)
      expected += 0.1 * std::pow(0.9, kSteps - step) * static_cast<double>(weight(step, i));
    EXPECT_NEAR(static_cast<double>(averager.result().as<float>()[i]), expected, 1e-6);
  }
}

TEST_F(Averages, SwaIsTheMeanOfItsSnapshots) {
  Averager averager(recipe(AverageUse::swa), params_, *executor_);
  set(0);
  averager.start();
  for (int step = 1; step <= 15; ++step) {
    set(step);
    averager.observe(step, step < 6 ? 0.5 : 0.49);  // only below the threshold: 6, 9, 12, 15
  }
  EXPECT_EQ(averager.snapshots(), 4);
  EXPECT_EQ(averager.result_name(), "swa");
  for (int64_t i = 0; i < params_.flat_values().numel(); ++i) {
    double expected = 0;
    for (int step : {6, 9, 12, 15}) expected += static_cast<double>(weight(step, i)) / 4;
    EXPECT_NEAR(static_cast<double>(averager.result().as<float>()[i]), expected, 1e-6);
  }
}

TEST_F(Averages, SwaWithoutASnapshotGivesTheWeights) {
  Averager averager(recipe(AverageUse::swa), params_, *executor_);
  set(1);
  averager.start();
  averager.observe(3, 1);
  averager.observe(4, 0.1);
  EXPECT_EQ(averager.snapshots(), 0);
  EXPECT_EQ(averager.result_name(), "last");
  EXPECT_EQ(averager.result().data, params_.flat_values().data);
}

TEST_F(Averages, SwaGoesOnFromARestoredCount) {
  Averager averager(recipe(AverageUse::swa), params_, *executor_);
  for (int64_t i = 0; i < averager.swa().numel(); ++i) averager.swa().as<float>()[i] = 3;
  averager.restore_snapshots(2);
  for (int64_t i = 0; i < params_.flat_values().numel(); ++i) params_.flat_values().as<float>()[i] = 9;
  averager.observe(6, 0.1);
  EXPECT_EQ(averager.snapshots(), 3);
  for (int64_t i = 0; i < averager.swa().numel(); ++i) EXPECT_FLOAT_EQ(averager.result().as<float>()[i], 5);
}

TEST_F(Averages, NoneKeepsNothing) {
  Averager averager(recipe(AverageUse::none), params_, *executor_);
  set(1);
  averager.start();
  averager.observe(3, 0.1);
  EXPECT_FALSE(averager.ema());
  EXPECT_FALSE(averager.swa());
  EXPECT_EQ(averager.result_name(), "last");
  EXPECT_EQ(averager.result().data, params_.flat_values().data);
}

}  // namespace
}  // namespace fairway
