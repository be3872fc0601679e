// A file for any budget: at or under it every time, and nearly all of it where the model has to be degraded.
#include "artifact/fit.h"

#include <gtest/gtest.h>

#include "artifact/forecast.h"
#include "base/error.h"
#include "base/rng.h"
#include "quant/small_model.h"

namespace fairway {
namespace {

class Fit : public testing::Test {
 protected:
  Fitted at(uint64_t budget, bool fill = false) {
    return fit_model({.weights = small_.weights,
                      .recipe = small_.recipe,
                      .hessians = &small_.hessians,
                      .queue = small_.queue,
                      .budget = budget,
                      .fill = fill});
  }
  quant_test::SmallModel small_;
};

TEST_F(Fit, TwentyRandomBudgets) {
  const uint64_t natural = at(uint64_t{1} << 40).bytes.size();
  Rng rng(7);
  for (int i = 0; i < 20; ++i) {
    const auto budget = static_cast<uint64_t>((0.3 + 0.9 * rng.uniform01()) * static_cast<double>(natural));
    const Fitted fitted = at(budget);
    ASSERT_LE(fitted.bytes.size(), budget);
    EXPECT_EQ(fitted.natural_bytes, natural);
    if (natural > budget) {
      EXPECT_GE(static_cast<double>(fitted.bytes.size()), 0.995 * static_cast<double>(budget)) << budget << " of " << natural;
      EXPECT_EQ(fitted.method, "allocator");
    } else {
      EXPECT_EQ(fitted.bytes.size(), natural);
      EXPECT_EQ(fitted.method, "recipe");
    }
    EXPECT_EQ(fitted.ledger.total(), fitted.bytes.size());
    EXPECT_EQ(read_artifact(fitted.bytes, "fitted").tensors, fitted.model.tensors);
  }
}

TEST_F(Fit, FillsWhatTheRecipeLeavesFree) {
  const uint64_t natural = at(uint64_t{1} << 40).bytes.size(), budget = natural + natural / 5;
  const Fitted filled = at(budget, true);
  EXPECT_LE(filled.bytes.size(), budget);
  EXPECT_GT(filled.bytes.size(), natural);
}

TEST_F(Fit, PrunesByEitherScoreWhereTheRecipeAsks) {
  const uint64_t natural = at(uint64_t{1} << 40).bytes.size();
  for (const PruneScore score : {PruneScore::step, PruneScore::hessian}) {
    small_.recipe.quant.prune = score;
    const uint64_t budget = natural - natural / 50;
    const Fitted fitted = at(budget);
    EXPECT_LE(fitted.bytes.size(), budget);
    EXPECT_GE(static_cast<double>(fitted.bytes.size()), 0.995 * static_cast<double>(budget));
    EXPECT_EQ(fitted.method, "pruned");
    EXPECT_GT(fitted.pruned, 0);
  }
}

TEST_F(Fit, RefusesABudgetThatNothingFits) { EXPECT_THROW(at(100), InputError); }

TEST_F(Fit, TheForecastIsNearTheFile) {
  SizeForecast forecast(small_.recipe, small_.queue);
  const auto natural = static_cast<double>(at(uint64_t{1} << 40).bytes.size());
  EXPECT_NEAR(static_cast<double>(forecast.bytes(small_.weights.flat_values())), natural, 0.05 * natural);
}

}  // namespace
}  // namespace fairway
