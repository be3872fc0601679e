// A file for any budget: at or under it every time, nearly all of it used, and never a worse model for more bytes.
#include "pack/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "backends/backends.h"
#include "base/error.h"
#include "base/rng.h"
#include "pack/forecast.h"
#include "quant/small_model.h"

namespace fairway {
namespace {

class Fit : public testing::Test {
 protected:
  Fitted at(uint64_t budget, bool as_published = false) {
    return fit_model({.weights = small_.weights,
                      .recipe = small_.recipe,
                      .hessians = &small_.hessians,
                      .site = small_.queue,
                      .budget = budget,
                      .as_published = as_published});
  }
  Fitted published(uint64_t budget = uint64_t{1} << 40) { return at(budget, true); }
  quant_test::SmallModel small_;
};

TEST_F(Fit, TwentyRandomBudgets) {
  const uint64_t natural = published().bytes.size(), finest = at(uint64_t{1} << 40).bytes.size();
  EXPECT_GT(finest, natural);
  Rng rng(7);
  for (int i = 0; i < 20; ++i) {
    const auto budget = static_cast<uint64_t>((0.3 + 0.9 * rng.uniform01()) * static_cast<double>(natural));
    const Fitted fitted = at(budget);
    ASSERT_LE(fitted.bytes.size(), budget);
    EXPECT_GE(static_cast<double>(fitted.bytes.size()), 0.995 * static_cast<double>(std::min(budget, finest)))
        << budget << " of " << natural;
    EXPECT_EQ(fitted.method, "allocator");
    EXPECT_EQ(fitted.natural_bytes, 0U) << "the recipe's own setting is made only where bytes stay free";
    EXPECT_EQ(fitted.ledger.total(), fitted.bytes.size());
    EXPECT_EQ(read_artifact(fitted.bytes, "fitted").tensors, fitted.model.tensors);
  }
}

TEST_F(Fit, MoreBytesNeverMeanMoreDamage) {
  const Fitted own = published();
  const auto natural = static_cast<double>(own.bytes.size());
  double before = std::numeric_limits<double>::infinity();
  for (const double share : {0.35, 0.5, 0.7, 0.85, 0.95, 0.99, 1.01, 1.05, 1.2, 1.5, 3.0, 100.0}) {
    const Fitted fitted = at(static_cast<uint64_t>(share * natural));
    EXPECT_LE(fitted.damage, before) << share;
    EXPECT_GT(fitted.damage, 0);
    if (share > 1) {
      EXPECT_LT(fitted.damage, own.damage) << share;
    }
    before = fitted.damage;
  }
}

// It keeps tables in half precision, finer than the allocator's finest step; a large budget pays for that.
TEST_F(Fit, TakesTheRecipesOwnSettingWhereItLosesLess) {
  small_.recipe.quant.matrix_bits = 8;
  small_.recipe.quant.clip = {.attn = 6, .mlp = 6, .token = 6, .table = 6};
  small_.recipe.quant.sensitivity.table = 1000;
  const Fitted own = published(), larger = at(2 * own.bytes.size()), smaller = at(own.bytes.size() / 2);
  EXPECT_EQ(larger.method, "recipe");
  EXPECT_EQ(larger.bytes, own.bytes);
  EXPECT_EQ(larger.damage, own.damage);
  EXPECT_EQ(smaller.method, "allocator");
}

// Of rounding and a trellis that one is kept whose predictions are nearer; tuning then brings it nearer still, in the budget.
TEST_F(Fit, MeasuresWhatItChooses) {
  const auto executor = make_executor(Backend::cpu, small_.queue);
  constexpr int64_t kLength = 16, kRows = 2 * KlDivergence::kTogether;
  std::vector<int32_t> text(static_cast<size_t>(kRows * (kLength + 1)));
  Rng rng(3);
  for (int32_t& token : text) token = static_cast<int32_t>(rng.uniform01() * static_cast<double>(small_.recipe.model.vocab));
  const CalibrationModel model{small_.recipe, small_.weights, {}, *executor, small_.queue};
  const auto judge = [&](int64_t measured) {
    return std::make_unique<KlDivergence>(
        model, std::span<const int32_t>(text).last(text.size() * static_cast<size_t>(measured) / kRows), kLength,
        KlDivergence::kTogether);
  };
  const uint64_t budget = published().bytes.size() / 2;
  const auto measured = [&](bool trellis, int64_t rows) {
    small_.recipe.quant.trellis = trellis;
    return fit_model({.weights = small_.weights,
                      .recipe = small_.recipe,
                      .hessians = &small_.hessians,
                      .site = small_.queue,
                      .budget = budget,
                      .divergence = [&] { return judge(rows); }});
  };
  const Fitted rounded = measured(false, KlDivergence::kTogether), either = measured(true, KlDivergence::kTogether),
               tuned = measured(true, kRows);
  EXPECT_GT(rounded.divergence, 0);
  EXPECT_EQ(rounded.divergence, judge(KlDivergence::kTogether)->of(rounded.model));
  EXPECT_LE(either.divergence, rounded.divergence);
  EXPECT_LT(tuned.divergence, either.divergence);
  EXPECT_LE(tuned.bytes.size(), budget);
  EXPECT_EQ(read_artifact(tuned.bytes, "tuned").tensors, tuned.model.tensors);
}

TEST_F(Fit, AsPublishedIsTheRecipesSettingOrNone) {
  QuantReport report;
  const QuantizedModel natural = small_.quantize(report);
  const Fitted own = published();
  EXPECT_EQ(own.method, "recipe");
  EXPECT_EQ(own.model.tensors, natural.tensors);
  EXPECT_EQ(own.natural_bytes, own.bytes.size());
  EXPECT_EQ(published(own.bytes.size()).bytes, own.bytes);
  try {
    published(own.bytes.size() - 1);
    ADD_FAILURE() << "a budget that it does not fit was met";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(own.bytes.size()) + " bytes"));
  }
}

TEST_F(Fit, PrunesByEitherScoreWhereTheRecipeAsks) {
  const Fitted own = published();
  const uint64_t natural = own.bytes.size();
  for (const PruneScore score : {PruneScore::step, PruneScore::hessian}) {
    small_.recipe.quant.prune = score;
    const uint64_t budget = natural - natural / 50;
    const Fitted fitted = published(budget);
    EXPECT_LE(fitted.bytes.size(), budget);
    EXPECT_GE(static_cast<double>(fitted.bytes.size()), 0.995 * static_cast<double>(budget));
    EXPECT_EQ(fitted.method, "pruned");
    EXPECT_GT(fitted.pruned, 0);
    EXPECT_GT(fitted.damage, own.damage);
    EXPECT_LT(at(budget).damage, fitted.damage);
    EXPECT_THROW(published(natural / 4), InputError);
  }
}

TEST_F(Fit, RefusesABudgetThatNothingFits) { EXPECT_THROW(at(100), InputError); }

TEST_F(Fit, TheForecastIsNearTheFile) {
  SizeForecast forecast(small_.recipe, small_.queue);
  const auto natural = static_cast<double>(published().bytes.size());
  EXPECT_NEAR(static_cast<double>(forecast.bytes(small_.weights.flat_values())), natural, 0.05 * natural);
}

}  // namespace
}  // namespace fairway
