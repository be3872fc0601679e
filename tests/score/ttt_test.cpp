// What learns and what stays (scoring spec §2.5).
#include <gtest/gtest.h>

#include <numeric>

#include "comm/thread_ranks.h"
#include "score/learner.h"
#include "score/metric.h"
#include "score/tiny_score.h"
#include "score/windows.h"

namespace fairway::score_test {
namespace {

TEST(Ttt, RatesFallAsACosineOverTheChunks) {
  EXPECT_DOUBLE_EQ(cosine_rate(0.01, 0, 5), 0.01);
  EXPECT_NEAR(cosine_rate(0.01, 2, 5), 0.005, 1e-12);
  EXPECT_NEAR(cosine_rate(0.01, 4, 5), 0, 1e-12);
}

// Names of banks with the slices that changed after one learned chunk.
std::map<std::string, std::vector<bool>> changed_slices(const Recipe& recipe) {
  const ScoredModel model = tiny_model(recipe);
  auto params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::kept);
  model.load(*params);
  ParamStore before(parameter_table(recipe), ParamStore::Gradients::none);
  model.load(before);
  Machine machine;
  ChunkLearner learner(model, params, recipe.score, machine.context());
  const std::vector<uint16_t> stream = tiny_stream(2 * kContext);
  ScoreLedger ledger(stream);
  ledger.score(1, std::vector<TargetScore>(2 * kContext));
  learner.learn(ledger.scored(1, 2 * kContext + 1), 0.1);
  std::map<std::string, std::vector<bool>> out;
  for (size_t i = 0; i < before.banks().size(); ++i) {
    const Tensor old = before.banks()[i].value, now = params->banks()[i].value;
    for (int64_t slice = 0; slice < old.dim(0); ++slice) {
      const Tensor a = old.slice(slice), b = now.slice(slice);
      out[before.banks()[i].info.name].push_back(std::memcmp(a.data, b.data, a.spec.bytes()) != 0);
    }
  }
  return out;
}

TEST(Ttt, ChunksAfterWhatIsWantedAreLeftOut) {
  const Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = tiny_stream(6 * recipe.score.ttt.chunk);
  const ScoreSettings settings = settings_of(recipe, ScoreMode::ttt);
  const ScoreLedger truth = score(model, settings, stream);
  Machine machine;
  const auto evaluator = make_evaluator(model, settings, machine.context());
  const int64_t chunk = recipe.score.ttt.chunk;
  for (const int64_t end : {int64_t{2}, chunk + 1, chunk + 2, 3 * chunk + chunk / 2}) {
    ScoreLedger ledger(stream);
    ledger.want({1, end});
    evaluator->run(ledger, {});
    EXPECT_TRUE(same_records(truth, ledger, end)) << end;
    for (int64_t target = 1; target < end; ++target) ASSERT_EQ(ledger.times_scored(target), 1);
    EXPECT_FALSE(ledger.is_scored(5 * chunk + 1)) << end;
  }
}

TEST(Ttt, FrozenBlocksKeepTheirBankSlicesToo) {
  Recipe recipe = tiny_recipe();
  recipe.score.ttt.frozen_blocks = 2;
  recipe.score.ttt.freeze_semantics = FreezeSemantics::intent;
  auto changed = changed_slices(recipe);
  EXPECT_EQ(changed["bank.qo"], (std::vector<bool>{false, false, true, false, false, true}));
  EXPECT_EQ(changed["bank.up"], (std::vector<bool>{false, false, true}));
  EXPECT_EQ(changed["block.attn_scale"], (std::vector<bool>{false, false, true}));
}

TEST(Ttt, AsPublishedOnlyTheVectorsOfFrozenBlocksStay) {
  Recipe recipe = tiny_recipe();
  recipe.score.ttt.frozen_blocks = 2;
  recipe.score.ttt.freeze_semantics = FreezeSemantics::compat;
  auto changed = changed_slices(recipe);
  EXPECT_EQ(changed["bank.qo"], std::vector<bool>(6, true));
  EXPECT_EQ(changed["block.attn_scale"], (std::vector<bool>{false, false, true}));
  recipe.score.ttt.frozen_blocks = 0;
  EXPECT_EQ(changed_slices(recipe)["block.attn_scale"], std::vector<bool>(3, true));
}

TEST(Ttt, ClippedStepsAreNoLongerThanTheLimit) {
  Recipe recipe = tiny_recipe();
  ParamStore params(parameter_table(recipe), ParamStore::Gradients::kept);
  Machine machine(2);
  MaskedSgd sgd(params, params.flat_grads(), trainable_ranges(params, recipe.model, 0, FreezeSemantics::intent), {0.9, 1.0},
                *machine.executor);
  float* gradient = params.flat_grads().as<float>();
  std::fill_n(gradient, params.flat_grads().numel(), 3.0f);
  const std::vector<float> start(params.flat_values().as<float>(),
                                 params.flat_values().as<float>() + params.flat_values().numel());
  sgd.step(1.0);
  double squares = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    const double step = static_cast<double>(params.flat_values().as<float>()[i]) - static_cast<double>(start[i]);
    squares += step * step;
  }
  EXPECT_NEAR(squares, 1.0, 1e-4);
}

// Weights after an epoch of two steps, 32 sequences and five: groups of several, of one and of none.
std::vector<float> learned_weights(const Recipe& recipe, int threads, Communicator& comm) {
  const ScoredModel model = tiny_model(recipe);
  auto params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::kept);
  model.load(*params);
  Machine machine(threads);
  ScoreContext context = machine.context();
  context.comm = &comm;
  ChunkLearner learner(model, params, recipe.score, context);
  constexpr int64_t kTargets = 37 * 16;
  const std::vector<uint16_t> stream = tiny_stream(kTargets);
  ScoreLedger ledger(stream);
  ledger.score(1, std::vector<TargetScore>(kTargets));
  learner.learn(ledger.scored(1, kTargets + 1), 0.1);
  const float* values = params->flat_values().as<float>();
  return {values, values + params->flat_values().numel()};
}

TEST(Ttt, LearnedWeightsDoNotDependOnRanksAndThreads) {
  Recipe recipe = tiny_recipe();
  recipe.score.context = 16;
  recipe.score.ttt.epochs = 1;
  const std::vector<float> want = learned_weights(recipe, 1, single_process());
  for (const int threads : {2, 3, 8}) EXPECT_TRUE(learned_weights(recipe, threads, single_process()) == want) << threads;
  for (const int ranks : {2, 4, 5})
    ThreadRanks(ranks).run([&](Communicator& comm) {
      EXPECT_TRUE(learned_weights(recipe, 1 + comm.rank() % 2, comm) == want) << comm.rank() << " of " << ranks;
    });
}

TEST(Ttt, LearningLowersTheLossAndEveryRunStartsAnew) {
  const Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = tiny_stream(12 * kContext);
  const TargetBytes bytes(model.bytes);
  const double sliding = measure(score(model, settings_of(recipe, ScoreMode::sliding), stream), bytes).loss();
  const ScoreLedger learned = score(model, settings_of(recipe, ScoreMode::ttt), stream);
  EXPECT_LT(measure(learned, bytes).loss(), sliding - 0.1);
  EXPECT_EQ(learned.state_version(), 5);  // six chunks, nothing is learned from the last
}

TEST(Ttt, PassesAreCounted) {
  const Recipe recipe = tiny_recipe();
  ScoreSettings settings = settings_of(recipe, ScoreMode::ttt);
  settings.score.windows = 1;
  Machine machine;
  const std::vector<uint16_t> stream = tiny_stream(6 * kContext);
  const auto evaluator = make_evaluator(tiny_model(recipe), settings, machine.context());
  for (int run = 0; run < 2; ++run) {  // counts begin anew with each run
    ScoreLedger ledger(stream);
    evaluator->run(ledger, {});
    EXPECT_EQ(evaluator->cost().forward.tokens, WindowPlan(6 * kContext, kContext, kStride).count() * kContext);
    EXPECT_EQ(evaluator->cost().learning.tokens, 2 * recipe.score.ttt.chunk * recipe.score.ttt.epochs);  // not the last chunk
    EXPECT_GT(evaluator->cost().learning.seconds, 0);
  }
}

TEST(Ttt, TrainingBeforeScoringIsCaughtByTheLedger) {
  const Recipe recipe = tiny_recipe();
  ScoreSettings control = settings_of(recipe, ScoreMode::ttt);
  control.control = NegativeControl::ttt_train_first;
  Machine machine;
  const std::vector<uint16_t> stream = tiny_stream(6 * kContext);
  ScoreLedger strict(stream);
  EXPECT_ANY_THROW(make_evaluator(tiny_model(recipe), control, machine.context())->run(strict, {}));
}

}  // namespace
}  // namespace fairway::score_test
