// Intervals of the comparison by documents, on made-up runs whose true difference is known: how often they hold it, how often
// equal recipes are told apart, and that threads change no bit.
#include "analysis/document_bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace fairway {
namespace {

// Bits of a document: bytes · (1 + its own hardness + the side's effect + the seed's luck + the luck of this seed here).
struct World {
  int documents = 120;
  double effect = 0;         // of the runs' recipe, in bits per byte
  double seed_spread = 0;    // standard deviation over seeds
  double document_gain = 0;  // standard deviation over documents of what the change brings
  double luck = 0.02;        // of a seed on a document
  double hardness = 0.3;
};

struct Made {
  DocumentSample sample;
  double models_truth = 0;  // what the difference of these very models is over all documents there could be
};

Made make(const World& world, size_t runs, size_t baseline, Rng& rng) {
  Made made;
  std::vector<double> hardness, gain;
  for (int d = 0; d < world.documents; ++d) {
    made.sample.bytes.push_back(std::floor(500 + 3000 * std::exp(0.8 * rng.normal())));
    hardness.push_back(world.hardness * rng.normal());
    gain.push_back(world.document_gain * rng.normal());
  }
  const auto side = [&](size_t count, bool changed) {
    std::vector<std::vector<double>> out;
    double mean_luck = 0;
    for (size_t r = 0; r < count; ++r) {
      const double seed = world.seed_spread * rng.normal();
      mean_luck += seed / static_cast<double>(count);
      std::vector<double>& bits = out.emplace_back();
      for (size_t d = 0; d < hardness.size(); ++d)
        bits.push_back(made.sample.bytes[d] *
                       (1 + hardness[d] + seed + world.luck * rng.normal() + (changed ? world.effect + gain[d] : 0.0)));
    }
    made.models_truth += changed ? world.effect + mean_luck : -mean_luck;
    return out;
  };
  made.sample.runs = side(runs, true);
  made.sample.baseline = side(baseline, false);
  return made;
}

bool holds(const Interval& interval, double value) { return interval.low <= value && value <= interval.high; }

struct Share {
  double models = 0, recipes = 0, models_zero = 0, recipes_zero = 0;  // of intervals: hold the truth, hold zero
};

Share shares(const World& world, size_t runs, size_t baseline, int repeats, uint64_t seed) {
  ThreadPool pool(2);
  Rng rng(seed);
  Share out;
  for (int i = 0; i < repeats; ++i) {
    const Made made = make(world, runs, baseline, rng);
    const DocumentTest test = test_documents(made.sample, {.draws = 800, .seed = 1}, pool);
    out.models += holds(test.models.interval, made.models_truth) ? 1.0 / repeats : 0;
    out.models_zero += holds(test.models.interval, 0) ? 1.0 / repeats : 0;
    if (!test.recipes) continue;
    out.recipes += holds(test.recipes->interval, world.effect) ? 1.0 / repeats : 0;
    out.recipes_zero += holds(test.recipes->interval, 0) ? 1.0 / repeats : 0;
  }
  return out;
}

constexpr int kRepeats = 400;  // a share of 0.95 is then known to ± 0.022 (two standard errors)

TEST(DocumentTest, IntervalsHoldTheTruthAsOftenAsTheySay) {
  const Share many = shares({.effect = -0.01, .seed_spread = 0.004, .document_gain = 0.03}, 3, 3, kRepeats, 1);
  EXPECT_NEAR(many.models, 0.95, 0.025);
  EXPECT_GT(many.recipes, 0.93);
  const Share few = shares({.documents = 12, .effect = 0.02, .seed_spread = 0.01, .document_gain = 0.03}, 2, 2, kRepeats, 2);
  EXPECT_GT(few.models, 0.91);  // a dozen documents of very different lengths
  EXPECT_GT(few.recipes, 0.93);
  const Share one_sided = shares({.seed_spread = 0.004}, 4, 1, kRepeats, 3);  // its spread is borrowed
  EXPECT_GT(one_sided.recipes, 0.93);
}

// Two seeds of one recipe are two different models. That must not pass for two different recipes.
TEST(DocumentTest, SeedsAreNoEffectOfTheRecipe) {
  const Share equal = shares({.seed_spread = 0.02}, 2, 2, kRepeats, 4);
  EXPECT_LT(equal.models_zero, 0.4) << "the models do differ";
  EXPECT_NEAR(equal.models, 0.95, 0.025) << "and by as much as they say";
  EXPECT_GT(equal.recipes_zero, 0.93) << "but the recipes do not";
}

// Two seeds may happen to lie close together. That must not leave the error of the documents alone.
TEST(DocumentTest, FewSeedsRaiseNoMoreAlarmsThanTheLevelSays) {
  const World world{.seed_spread = 0.006};
  EXPECT_GT(shares(world, 2, 2, kRepeats, 14).recipes_zero, 0.95);
  EXPECT_GT(shares(world, 2, 1, kRepeats, 15).recipes_zero, 0.93);  // 0.88 with Satterthwaite's degrees of freedom
}

TEST(DocumentTest, FindsASmallEffectThatTheDocumentsHide) {
  Rng rng(5);
  ThreadPool pool(2);
  // Documents differ by 0.3 bits per byte, the models by 0.004: unpaired, 0.3 · √(2/120) = 0.04 would hide it.
  const Made made = make({.effect = -0.004, .luck = 0.004}, 1, 1, rng);
  const DocumentTest test = test_documents(made.sample, {}, pool);
  EXPECT_LT(test.models.interval.high, 0);
  EXPECT_TRUE(holds(test.models.interval, -0.004));
  EXPECT_LT(test.models.p, 0.001);
  EXPECT_LT(test.models.detectable, 0.004);
  EXPECT_FALSE(test.recipes.has_value());
  EXPECT_FALSE(test.seeds_needed.has_value());
}

// What is called detectable is found in four cases of five.
TEST(DocumentTest, TheDetectableDifferenceIsFoundInFourCasesOfFive) {
  Rng rng(6);
  ThreadPool pool(2);
  double detectable = 0;  // of texts of this kind; one text alone may have a few long documents more
  for (int i = 0; i < 50; ++i)
    detectable += test_documents(make({}, 1, 1, rng).sample, {.draws = 400}, pool).models.detectable / 50;
  const Share found = shares({.effect = detectable}, 1, 1, kRepeats, 7);
  EXPECT_NEAR(1 - found.models_zero, 0.8, 0.1);
}

TEST(DocumentTest, SeedsNeededGiveTheirP) {
  Rng rng(8);
  ThreadPool pool(2);
  const Made made = make({.effect = -0.004, .seed_spread = 0.004}, 5, 5, rng);
  const DocumentTest test = test_documents(made.sample, {}, pool);
  ASSERT_TRUE(test.seeds_needed.has_value());
  const double total = [&] {
    double sum = 0;
    for (const double b : made.sample.bytes) sum += b;
    return sum;
  }();
  std::vector<double> x, y;
  for (const auto* side : {&made.sample.runs, &made.sample.baseline})
    for (const std::vector<double>& bits : *side) {
      double sum = 0;
      for (const double b : bits) sum += b;
      (side == &made.sample.runs ? x : y).push_back(sum / total);
    }
  const double a = sample_variance(x), b = sample_variance(y);
  const auto p_with = [&](int64_t seeds) {
    const auto n = static_cast<double>(seeds);
    return t_test({mean(x) - mean(y), std::sqrt((a + b) / n), (a + b) * (a + b) * (n - 1) / (a * a + b * b)}).p;
  };
  EXPECT_LT(p_with(*test.seeds_needed), kRecordP);
  EXPECT_GE(p_with(*test.seeds_needed - 1), kRecordP);
  DocumentSample equal = made.sample;
  equal.baseline = equal.runs;
  const DocumentTest none = test_documents(equal, {}, pool);
  EXPECT_EQ(none.models.difference.value, 0);
  EXPECT_EQ(none.models.p, 1);
  EXPECT_FALSE(none.seeds_needed.has_value());
}

TEST(DocumentTest, PairedSeedsLeaveOutWhatSeedsShare) {
  Rng rng(9);
  ThreadPool pool(2);
  DocumentSample sample = make({.seed_spread = 0.05}, 4, 1, rng).sample;
  sample.baseline = sample.runs;
  for (std::vector<double>& run : sample.runs)
    for (size_t d = 0; d < run.size(); ++d) run[d] -= sample.bytes[d] * (0.003 + 0.0005 * rng.normal());
  const DocumentTest apart = test_documents(sample, {}, pool);
  sample.paired_seeds = true;
  const DocumentTest paired = test_documents(sample, {}, pool);
  EXPECT_LT(paired.recipes->interval.high, 0);
  EXPECT_GT(apart.recipes->interval.high, 0);
  EXPECT_LT(paired.seed_error, 0.1 * apart.seed_error);
}

TEST(DocumentTest, TheSameBitsForAnyNumberOfThreads) {
  Rng rng(10);
  const Made made = make({.effect = 0.01, .seed_spread = 0.002}, 2, 2, rng);
  ThreadPool one(1), three(3);
  const DocumentTest a = test_documents(made.sample, {}, one), b = test_documents(made.sample, {}, three);
  EXPECT_EQ(a.models.interval.low, b.models.interval.low);
  EXPECT_EQ(a.models.interval.high, b.models.interval.high);
  EXPECT_EQ(a.models.difference.error, b.models.difference.error);
  EXPECT_EQ(a.recipes->interval.low, b.recipes->interval.low);
}

TEST(DocumentTest, TwoDocumentsAndDocumentsWithoutBytes) {
  ThreadPool pool(1);
  const DocumentTest two = test_documents({.bytes = {10, 0}, .runs = {{9, 1}}, .baseline = {{10, 1}}}, {}, pool);
  EXPECT_NEAR(two.models.difference.value, -0.1, 1e-12);
  EXPECT_TRUE(std::isfinite(two.models.interval.low) && std::isfinite(two.models.p));
}

}  // namespace
}  // namespace fairway
