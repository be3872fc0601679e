// A tilt added to each mode (scoring spec §2.8): it changes the records of hinted targets, by the formula, and nothing else:
// what is learned knows nothing of it.
#include <gtest/gtest.h>

#include <cmath>

#include "score/metric.h"
#include "score/tilt_hints.h"
#include "score/tiny_score.h"

namespace fairway::score_test {
namespace {

struct TiltCase {
  std::string name;
  ScoreMode mode;
  bool carried = false;
  int64_t phases = 0;
  double damping = 0;
};
void PrintTo(const TiltCase& c, std::ostream* out) { *out << c.name; }

class TiltTest : public testing::TestWithParam<TiltCase> {
 protected:
  ScoreSettings settings(bool tilt) const {
    ScoreSettings out = settings_of(recipe_, {GetParam().mode, tilt});
    out.score.slot.carried = GetParam().carried;
    out.score.lora.phases = GetParam().phases;
    out.score.lora.phase_documents = 4;
    out.score.lora.phase_chunk = kContext;
    out.score.lora.phase_lr = 0.02;
    out.score.ngram.damping = GetParam().damping;
    return out;
  }
  ScoreLedger captured(const ScoreSettings& settings) const {
    Machine machine(2);
    ScoreLedger ledger = make_ledger(stream_, settings);
    std::vector<int64_t> all;
    for (int64_t target = 1; target <= ledger.targets(); ++target) all.push_back(target);
    ledger.capture(all);
    make_evaluator(model_, settings, machine.context())->run(ledger, {});
    return ledger;
  }

  const Recipe recipe_ = tiny_recipe();
  const ScoredModel model_ = tiny_model(recipe_);
  const std::vector<uint16_t> stream_ = tiny_stream(500);
};

TEST_P(TiltTest, ChangesHintedTargetsByTheFormulaAndNoOthers) {
  const ScoreLedger without = captured(settings(false)), with = captured(settings(true));
  ThreadPool pool(1);
  const TiltHints hints(settings(true).score.ngram, stream_, pool);
  int hinted = 0, hits = 0;
  double change = 0;
  for (int64_t target = 1; target <= 500; ++target) {
    const Hint hint = hints.of(target).hint;
    ASSERT_EQ(with.version(target), without.version(target));
    if (hint.token < 0) {
      ASSERT_EQ(with.digest(target), without.digest(target)) << target;
      ASSERT_EQ(with.nll(target), without.nll(target)) << target;
      continue;
    }
    ++hinted;
    const auto& values = without.captures().at(target);
    const double p = std::exp(static_cast<double>(values[static_cast<size_t>(hint.token)]));
    const double beta = static_cast<double>(hint.beta) * std::pow(1 - p, GetParam().damping);
    const bool hit = hint.token == stream_[static_cast<size_t>(target)];
    hits += hit ? 1 : 0;
    const double expected = std::log(1 + p * (std::exp(beta) - 1)) - (hit ? beta : 0);
    EXPECT_NEAR(with.nll(target) - without.nll(target), expected, 1e-5) << target;
    EXPECT_NE(with.digest(target), without.digest(target)) << target;
    change += expected;
  }
  EXPECT_GT(hinted, 50);
  EXPECT_GT(hits, 10);
  EXPECT_GT(hinted, hits);
  EXPECT_NEAR(with.tilt_nats(), change, 1e-3);
  EXPECT_EQ(without.tilt_nats(), 0);
}

TEST_P(TiltTest, DistributionsAreNormalisedAndGiveScoreAndDigest) {
  const ScoreLedger ledger = captured(settings(true)), alone = score(model_, settings(true), stream_, 2);
  EXPECT_TRUE(same_records(ledger, alone, 501)) << "captures change a record";
  for (const auto& [target, values] : ledger.captures()) {
    double sum = 0;
    for (const float value : values) sum += std::exp(static_cast<double>(value));
    ASSERT_NEAR(sum, 1, 1e-5) << target;
    ASSERT_NEAR(values[stream_[static_cast<size_t>(target)]], -ledger.nll(target), 1e-5) << target;
    ASSERT_EQ(digest_of(values), ledger.digest(target)) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, TiltTest,
                         testing::Values(TiltCase{"plain", ScoreMode::plain}, TiltCase{"sliding", ScoreMode::sliding},
                                         TiltCase{"damped", ScoreMode::sliding, false, 0, 1.5},
                                         TiltCase{"slot", ScoreMode::slot}, TiltCase{"carried", ScoreMode::slot, true},
                                         TiltCase{"ttt", ScoreMode::ttt}, TiltCase{"lora", ScoreMode::lora_ttt},
                                         TiltCase{"lora_damped", ScoreMode::lora_ttt, false, 0, 1.5},
                                         TiltCase{"phases", ScoreMode::lora_ttt, false, 2}),
                         [](const auto& test) { return test.param.name; });

TEST(TiltedRow, WithoutAHintNothingChanges) {
  const TiltedRow row = tilted_row(-1, 1.0f, 2.0f, 9.0f, 0.0);
  EXPECT_EQ(row.value(0, 1.25f, 2.0f), 1.25f - 2.0f);
  EXPECT_EQ(row.change(0), 0);
}

}  // namespace
}  // namespace fairway::score_test
