// The statistical detector sees what the published SLOT gains from the future, and nothing where a score is honest.
#include "audit/leak_statistics.h"

#include <gtest/gtest.h>

#include "audit/slice.h"

namespace fairway::score_test {
namespace {

LeakEstimate estimate(ScoreMode mode, int64_t cuts, const std::function<void(ScoreSettings&)>& change = {}) {
  Slice slice({mode});
  if (change) change(slice.input.settings);
  AuditRuns runs(slice.input);
  const ScoreLedger truth = runs.run(slice.input.stream);
  return estimate_leak(runs, truth, slice.input.settings.score.context, cuts, 1);
}

TEST(LeakStatistics, AnHonestScoreGainsNothing) {
  for (const ScoreMode mode : {ScoreMode::sliding, ScoreMode::slot}) {
    const LeakEstimate found = estimate(mode, 4);
    EXPECT_EQ(found.gain, 0) << "no bit depends on the future";
    EXPECT_EQ(found.sigma, 0);
    EXPECT_FALSE(found.leak());
  }
}

TEST(LeakStatistics, PublishedSlotGainsFromTheFuture) {
  const LeakEstimate found =
      estimate(ScoreMode::slot_published, 48, [](ScoreSettings& settings) { settings.score.slot.lr = 0.05; });
  EXPECT_TRUE(found.leak()) << sentence_of(found);
  EXPECT_NE(sentence_of(found).find("a leak"), std::string::npos);
}

TEST(LeakStatistics, NoiseAloneIsNoLeak) {
  EXPECT_FALSE((LeakEstimate{.gain = 0.002, .sigma = 0.001, .cuts = 9}.leak()));
  EXPECT_TRUE((LeakEstimate{.gain = 0.004, .sigma = 0.001, .cuts = 9}.leak()));
  EXPECT_FALSE((LeakEstimate{.gain = -0.1, .sigma = 0.001, .cuts = 9}.leak()))
      << "a score that the future makes worse gains nothing";
}

}  // namespace
}  // namespace fairway::score_test
