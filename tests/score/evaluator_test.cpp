// Every mode on a tiny model: complete, repeatable, the same bits whatever the batch and the threads, blind to what comes
// later.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "comm/thread_ranks.h"
#include "score/metric.h"
#include "score/tiny_score.h"
#include "score/windows.h"

namespace fairway::score_test {
namespace {

struct Case {
  std::string name;
  ScoringMode mode;
  bool carried = false, documents = false, lanes = false;
  int64_t phases = 0, lane = 1024;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

ScoreSettings case_settings(const Recipe& recipe, const Case& c) {
  ScoreSettings settings = settings_of(recipe, c.mode);
  settings.score.slot.carried = c.carried;
  settings.score.slot.lane = c.lane;
  settings.score.documents = c.documents;
  settings.score.lora.phases = c.phases;
  settings.score.lora.phase_documents = 4;
  settings.score.lora.phase_chunk = kContext;
  settings.score.lora.phase_lr = 0.02;
  return settings;
}

class EvaluatorTest : public testing::TestWithParam<Case> {
 protected:
  const Recipe recipe_ = tiny_recipe(GetParam().lanes);
  const ScoredModel model_ = tiny_model(recipe_);
  ScoreSettings settings_ = case_settings(recipe_, GetParam());
};

TEST_P(EvaluatorTest, ScoresEveryTargetOnceForAnyLength) {
  for (const int64_t targets : {1, 15, 96, 97, 110, 333}) {
    const std::vector<uint16_t> stream = tiny_stream(targets);
    const ScoreLedger ledger = score(model_, settings_, stream);
    EXPECT_TRUE(ledger.complete()) << targets;
    EXPECT_TRUE(std::isfinite(measure(ledger, TargetBytes(model_.bytes)).bits_per_byte()));
  }
}

TEST_P(EvaluatorTest, BatchesThreadsAndRepeatsChangeNoBit) {
  const std::vector<uint16_t> stream = tiny_stream(517);
  Machine machine(2);
  const auto evaluator = make_evaluator(model_, settings_, machine.context());
  ScoreLedger truth(stream), again(stream);
  evaluator->run(truth, {});
  evaluator->run(again, {});
  EXPECT_TRUE(same_records(truth, again, 518)) << "a second run of one evaluator";
  for (const int64_t windows : {1, 3, 8}) {
    settings_.score.windows = windows;
    for (const int threads : {1, 3})
      EXPECT_TRUE(same_records(truth, score(model_, settings_, stream, threads), 518)) << windows << " windows, " << threads;
  }
  EXPECT_EQ(measure(truth, TargetBytes(model_.bytes)).nats, measure(again, TargetBytes(model_.bytes)).nats);
}

TEST(LossesOnly, AreThoseOfTheRecordsWithDigests) {
  const Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = tiny_stream(333);
  for (const ScoreMode mode : {ScoreMode::plain, ScoreMode::sliding})
    for (const bool documents : {false, true}) {
      ScoreSettings settings = settings_of(recipe, mode);
      settings.score.documents = documents;
      const ScoreLedger whole = score(model, settings, stream);
      settings.losses_only = true;
      const ScoreLedger losses = score(model, settings, stream);
      for (int64_t target = 1; target <= 333; ++target) {
        ASSERT_EQ(losses.nll(target), whole.nll(target)) << target;
        ASSERT_EQ(losses.digest(target), 0U);
        ASSERT_NE(whole.digest(target), 0U);
      }
    }
}

class ShareTest : public EvaluatorTest {};

TEST_P(ShareTest, SharesOfRanksMergeToTheWhole) {
  ASSERT_TRUE(can_share(settings_));
  for (const int64_t targets : {97, 517}) {
    const std::vector<uint16_t> stream = tiny_stream(targets);
    const ScoreLedger truth = score(model_, settings_, stream);
    for (const int64_t ranks : {1, 3, 40}) {
      ScoreLedger merged = make_ledger(stream, settings_);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        Machine machine;
        ScoreLedger share = make_ledger(stream, settings_);
        make_evaluator(model_, settings_, machine.context())->run_share(share, rank, ranks, {});
        merged.merge(share);
      }
      EXPECT_TRUE(merged.complete()) << ranks;
      EXPECT_TRUE(same_records(truth, merged, targets + 1)) << ranks;
      EXPECT_EQ(truth.version(targets), merged.version(targets));
      EXPECT_EQ(measure(truth, TargetBytes(model_.bytes)).nats, measure(merged, TargetBytes(model_.bytes)).nats);
    }
  }
}

class TogetherTest : public EvaluatorTest {};

// Ranks that go through the stream together, of numbers that divide the groups of a step and of others.
TEST_P(TogetherTest, RanksWriteTheLedgerOfOneProcess) {
  ASSERT_FALSE(can_share(settings_));
  for (const int64_t targets : {40, 517, 1200}) {
    const std::vector<uint16_t> stream = tiny_stream(targets);
    const ScoreLedger truth = score(model_, settings_, stream);
    for (const int ranks : {2, 3, 4, 8, 9}) {
      ThreadRanks(ranks).run([&](Communicator& comm) {
        Machine machine(comm.rank() % 2 + 1);
        ScoreContext context = machine.context();
        context.comm = &comm;
        ScoreLedger ledger(stream);
        const auto evaluator = make_evaluator(model_, settings_, context);
        evaluator->run(ledger, {});
        EXPECT_TRUE(ledger.complete()) << ranks;
        EXPECT_TRUE(same_records(truth, ledger, targets + 1)) << comm.rank() << " of " << ranks << ", " << targets;
        for (int64_t target = 1; target <= targets; ++target) ASSERT_EQ(truth.version(target), ledger.version(target));
        ASSERT_EQ(truth.events().size(), ledger.events().size());
        for (size_t i = 0; i < truth.events().size(); ++i) {
          EXPECT_EQ(truth.events()[i].begin, ledger.events()[i].begin);
          EXPECT_EQ(truth.events()[i].version_after, ledger.events()[i].version_after);
        }
      });
    }
  }
}

TEST_P(EvaluatorTest, LaterTokensChangeNoBit) {
  const std::vector<uint16_t> stream = tiny_stream(400);
  settings_.schedule_targets = 400;
  const ScoreLedger truth = score(model_, settings_, stream);
  for (const int64_t cut : {1, 50, 96, 111, 112, 200, 391}) {
    std::vector<uint16_t> changed = stream;
    for (size_t i = static_cast<size_t>(cut); i < changed.size(); ++i)
      changed[i] = static_cast<uint16_t>((changed[i] * 7 + i) % kVocab);
    const ScoreLedger other = score(model_, settings_, changed);
    EXPECT_TRUE(same_records(truth, other, cut)) << cut;
    EXPECT_EQ(truth.digest(cut), other.digest(cut)) << "the distribution at " << cut << " depends on its target";
    const std::vector<uint16_t> prefix(stream.begin(), stream.begin() + cut);
    EXPECT_TRUE(same_records(truth, score(model_, settings_, prefix), cut)) << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, EvaluatorTest,
    testing::Values(Case{"plain", {ScoreMode::plain}}, Case{"sliding", {ScoreMode::sliding}},
                    Case{"documents", {ScoreMode::sliding}, false, true},
                    Case{"lanes", {ScoreMode::sliding}, false, false, true}, Case{"slot", {ScoreMode::slot}},
                    Case{"carried", {ScoreMode::slot}, true},
                    Case{"carried_lanes", {ScoreMode::slot}, true, false, false, 0, 5},
                    Case{"carried_tilt", {ScoreMode::slot, true}, true, false, false, 0, 5},
                    Case{"sliding_tilt", {ScoreMode::sliding, true}}, Case{"ttt", {ScoreMode::ttt}},
                    Case{"lora", {ScoreMode::lora_ttt}}, Case{"phases", {ScoreMode::lora_ttt}, false, false, false, 2},
                    Case{"lora_lanes", {ScoreMode::lora_ttt}, false, false, true},
                    Case{"ttt_documents", {ScoreMode::ttt}, false, true}, Case{"plain_tilt", {ScoreMode::plain, true}},
                    Case{"slot_tilt", {ScoreMode::slot, true}}, Case{"ttt_tilt", {ScoreMode::ttt, true}},
                    Case{"lora_tilt", {ScoreMode::lora_ttt, true}, false, false, false, 2},
                    Case{"ttt_slot", {ScoreMode::ttt, false, true}}, Case{"ttt_slot_tilt", {ScoreMode::ttt, true, true}},
                    Case{"lora_slot", {ScoreMode::lora_ttt, false, true}, false, false, false, 2},
                    Case{"lora_slot_tilt", {ScoreMode::lora_ttt, true, true}}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Modes, ShareTest,
                         testing::Values(Case{"plain", {ScoreMode::plain}}, Case{"sliding", {ScoreMode::sliding}},
                                         Case{"documents", {ScoreMode::sliding}, false, true}, Case{"slot", {ScoreMode::slot}},
                                         Case{"sliding_tilt", {ScoreMode::sliding, true}},
                                         Case{"slot_tilt", {ScoreMode::slot, true}}),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Modes, TogetherTest,
                         testing::Values(Case{"carried", {ScoreMode::slot}, true},
                                         Case{"carried_lanes", {ScoreMode::slot}, true, false, false, 0, 5},
                                         Case{"ttt", {ScoreMode::ttt}}, Case{"ttt_documents", {ScoreMode::ttt}, false, true},
                                         Case{"lora", {ScoreMode::lora_ttt}},
                                         Case{"phases", {ScoreMode::lora_ttt}, false, false, false, 2},
                                         Case{"lora_tilt", {ScoreMode::lora_ttt, true}, false, false, false, 2},
                                         Case{"ttt_slot", {ScoreMode::ttt, false, true}},
                                         Case{"ttt_slot_tilt", {ScoreMode::ttt, true, true}},
                                         Case{"lora_slot", {ScoreMode::lora_ttt, false, true}, false, false, false, 2},
                                         Case{"lora_slot_tilt", {ScoreMode::lora_ttt, true, true}}),
                         [](const auto& test) { return test.param.name; });

TEST(Shares, StateThatGoesThroughTheStreamIsNotShared) {
  const Recipe recipe = tiny_recipe();
  ScoreSettings carried = settings_of(recipe, ScoreMode::slot);
  carried.score.slot.carried = true;
  for (const ScoreSettings& settings : {carried, settings_of(recipe, ScoreMode::ttt), settings_of(recipe, ScoreMode::lora_ttt),
                                        settings_of(recipe, ScoreMode::slot_published)})
    EXPECT_FALSE(can_share(settings));
}

// The head runs on a window's last rows only; a program whose head runs on all rows must give the same bits.
TEST(Sliding, EqualsWindowsThatAreComputedWhole) {
  for (const bool lanes : {false, true}) {
    const Recipe recipe = tiny_recipe(lanes);
    const ScoredModel model = tiny_model(recipe);
    const std::vector<uint16_t> stream = tiny_stream(300);
    const ScoreLedger ledger = score(model, settings_of(recipe, ScoreMode::sliding), stream);
    Machine machine;
    EvalModel whole(recipe, 1, kContext, model.stage, *machine.executor);
    model.load(whole.params());
    const WindowPlan plan(300, kContext, kStride);
    for (int64_t k = 0; k < plan.count(); ++k) {
      const ScoreWindow window = plan.at(k);
      for (int64_t j = 0; j < kContext; ++j) {
        const int64_t at = window.start + j;
        whole.tokens()[static_cast<size_t>(j)] = at < 300 ? stream[static_cast<size_t>(at)] : 0;
        whole.targets()[static_cast<size_t>(j)] = at < 300 ? stream[static_cast<size_t>(at + 1)] : 0;
      }
      whole.run();
      for (int64_t target = window.first; target < window.end; ++target)
        ASSERT_EQ(ledger.nll(target), whole.nll()[static_cast<size_t>(target - 1 - window.start)]) << lanes << " " << target;
    }
  }
}

TEST(Documents, TokensOfAnEarlierDocumentDoNotReachTheNext) {
  Recipe recipe = tiny_recipe();
  recipe.model.smear = SmearKind::none;  // the static smear and pairs cross documents by their definition
  recipe.model.bigram = {};
  const ScoredModel model = tiny_model(recipe);
  std::vector<uint16_t> stream = tiny_stream(kContext);
  std::fill(stream.begin() + 1, stream.end(), uint16_t{9});
  stream[40] = 1;
  std::vector<uint16_t> other = stream;
  other[20] = 12;
  ScoreSettings settings = settings_of(recipe, ScoreMode::plain);
  for (const bool documents : {false, true}) {
    settings.score.documents = documents;
    const ScoreLedger a = score(model, settings, stream), b = score(model, settings, other);
    EXPECT_EQ(a.digest(60) == b.digest(60), documents);
    EXPECT_NE(a.digest(30), b.digest(30));
  }
}

TEST(Slot, AnOffsetLowersTheLossOfRepeatedText) {
  const Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = tiny_stream(900);
  const TargetBytes bytes(model.bytes);
  const double sliding = measure(score(model, settings_of(recipe, ScoreMode::sliding), stream), bytes).loss();
  const double slot = measure(score(model, settings_of(recipe, ScoreMode::slot), stream), bytes).loss();
  EXPECT_LT(slot, sliding);  // random weights know nothing, so that anything learned helps
}

TEST(Evaluator, AStrideBeyondTheContextIsRefused) {
  const Recipe recipe = tiny_recipe();
  ScoreSettings settings = settings_of(recipe, ScoreMode::sliding);
  settings.score.stride = kContext + 1;
  Machine machine;
  EXPECT_THROW(make_evaluator(tiny_model(recipe), settings, machine.context()), InputError);
}

TEST(Evaluator, TellsWhatIsLegal) {
  const Recipe recipe = tiny_recipe();
  EXPECT_TRUE(is_legal(settings_of(recipe, ScoreMode::ttt)));
  EXPECT_FALSE(is_legal(settings_of(recipe, ScoreMode::slot_published)));
  EXPECT_FALSE(is_legal(settings_of(recipe, ScoreMode::ngram_published)));
  ScoreSettings control = settings_of(recipe, ScoreMode::sliding);
  control.control = NegativeControl::broken_mask;
  EXPECT_FALSE(is_legal(control));
}

// A model of packed documents is scored plainly on the segments that it was trained on: a row of four is four short rows.
TEST(PlainRows, AreCutIntoTheSegmentsOfTraining) {
  Recipe recipe = tiny_recipe(true);
  recipe.model.bigram.rows = 0;  // looks at the token before, also across a cut
  recipe.data.sampler = SamplerKind::docpack;
  recipe.data.max_segment = 24;
  std::vector<uint16_t> stream = tiny_stream(2 * kContext);
  std::replace(stream.begin() + 1, stream.end(), uint16_t{1}, uint16_t{5});  // one document, longer than its segments
  ScoreSettings rows = settings_of(recipe, ScoreMode::plain), segments = rows;
  rows.score.documents = true;
  segments.score.context = recipe.data.max_segment;
  const ScoreLedger want = score(tiny_model(recipe), segments, stream), have = score(tiny_model(recipe), rows, stream);
  for (int64_t target = 1; target <= 2 * kContext; ++target) ASSERT_NEAR(have.nll(target), want.nll(target), 1e-5) << target;
  recipe.data.sampler = SamplerKind::sequential;
  const ScoreLedger whole = score(tiny_model(recipe), rows, stream);
  EXPECT_GT(std::abs(whole.nll(30) - want.nll(30)), 1e-4);  // its rows have no such cuts
}

}  // namespace
}  // namespace fairway::score_test
