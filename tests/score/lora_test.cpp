// Adapters (scoring spec §2.6): absent while B is zero, learning inside a document, gradients as differences tell them.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/tape.h"
#include "backends/backends.h"
#include "score/adapter_learner.h"
#include "score/documents.h"
#include "score/metric.h"
#include "score/tiny_score.h"

namespace fairway::score_test {
namespace {

std::vector<uint16_t> one_document(int64_t targets) {
  std::vector<uint16_t> stream = tiny_stream(targets);
  for (size_t i = 1; i < stream.size(); ++i)
    if (stream[i] == 1) stream[i] = 9;
  return stream;
}

TEST(Lora, TheFirstChunkOfADocumentIsScoredByTheModelAsItIs) {
  const Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = one_document(60);
  const ScoreLedger lora = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  const ScoreLedger plain = score(model, settings_of(recipe, ScoreMode::plain), stream);
  for (int64_t target = 1; target <= recipe.score.lora.chunk; ++target)
    EXPECT_EQ(lora.nll(target), plain.nll(target)) << target;
  EXPECT_NE(lora.nll(recipe.score.lora.chunk + 1), plain.nll(recipe.score.lora.chunk + 1));
}

TEST(Lora, LearnsInsideADocumentAndForgetsAtItsEnd) {
  Recipe recipe = tiny_recipe();
  recipe.score.lora.lr = 0.02;
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = one_document(400);
  const TargetBytes bytes(model.bytes);
  const double learned = measure(score(model, settings_of(recipe, ScoreMode::lora_ttt), stream), bytes).loss();
  EXPECT_LT(learned, measure(score(model, settings_of(recipe, ScoreMode::sliding), stream), bytes).loss() - 0.1);
  // The same text as a second document scores as it did alone: nothing is carried over.
  std::vector<uint16_t> twice = one_document(100);
  const size_t length = twice.size();
  twice.insert(twice.end(), twice.begin(), twice.begin() + static_cast<int64_t>(length));
  const ScoreLedger ledger = score(model, settings_of(recipe, ScoreMode::lora_ttt), twice);
  for (int64_t target = 1; target < static_cast<int64_t>(length); ++target)
    ASSERT_EQ(ledger.digest(target), ledger.digest(target + static_cast<int64_t>(length))) << target;
}

// Records, versions and events, whatever stands beside a document: one alone, batches that do not divide the documents, all.
TEST(Lora, DocumentsAtOnceChangeNothing) {
  for (const bool lanes : {false, true}) {
    Recipe recipe = tiny_recipe(lanes);
    recipe.score.lora.phases = 2;
    recipe.score.lora.phase_documents = 9;
    recipe.score.lora.phase_chunk = kContext;
    const ScoredModel model = tiny_model(recipe);
    const std::vector<uint16_t> stream = tiny_stream(1500);
    const auto documents = static_cast<int64_t>(document_ranges(stream, 1).size());
    ASSERT_GT(documents, 12);
    recipe.score.lora.batch = 1;
    const ScoreLedger truth = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
    for (const int64_t batch : {int64_t{2}, int64_t{3}, int64_t{8}, documents, int64_t{0}}) {
      recipe.score.lora.batch = batch;
      const ScoreLedger have = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream, 2);
      EXPECT_TRUE(same_records(truth, have, 1501)) << batch;
      for (int64_t target = 1; target <= 1500; ++target) ASSERT_EQ(truth.version(target), have.version(target));
      ASSERT_EQ(truth.events().size(), have.events().size());
      for (size_t i = 0; i < truth.events().size(); ++i) {
        EXPECT_EQ(truth.events()[i].begin, have.events()[i].begin);
        EXPECT_EQ(truth.events()[i].kind, have.events()[i].kind);
        EXPECT_EQ(truth.events()[i].version_after, have.events()[i].version_after);
      }
    }
  }
}

TEST(Lora, CapturedDistributionsHaveTheDigestsOfTheRecords) {
  const Recipe recipe = tiny_recipe();
  const std::vector<uint16_t> stream = tiny_stream(300);
  Machine machine;
  ScoreLedger ledger(stream);
  const std::vector<int64_t> asked{1, 40, 150, 300};
  ledger.capture(asked);
  const ScoreSettings settings = settings_of(recipe, ScoreMode::lora_ttt);
  make_evaluator(tiny_model(recipe), settings, machine.context())->run(ledger, {});
  EXPECT_TRUE(same_records(score(tiny_model(recipe), settings, stream), ledger, 301));
  for (const int64_t target : asked) {
    const std::vector<float>& values = ledger.captures().at(target);
    ASSERT_EQ(values.size(), static_cast<size_t>(kVocab));
    EXPECT_EQ(digest_of(values), ledger.digest(target));
    EXPECT_NEAR(values[stream[static_cast<size_t>(target)]], -ledger.nll(target), 1e-5);
  }
}

// A learner that was given other tokens than those it ran on would learn from what is not scored yet.
TEST(Lora, LearnsFromNothingButTheChunkThatRan) {
  const Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  Machine machine;
  const auto params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  model.load(*params);
  AdapterLearner learner(model, params, recipe.score, machine.context(), 2);
  const std::vector<uint16_t> stream = one_document(60);
  ScoreLedger ledger(stream);
  const int64_t chunk = recipe.score.lora.chunk;
  ledger.score(1, std::vector<TargetScore>(static_cast<size_t>(2 * chunk)));
  learner.begin_documents();
  const std::span<const uint16_t> text(stream);
  const std::vector<AdapterLearner::Chunk> chunks(
      1, {text.first(static_cast<size_t>(chunk)), text.subspan(1, static_cast<size_t>(chunk))});
  learner.run(chunks, chunk, {.gradients = true});
  const std::vector<ScoredTokens> other{ledger.scored(chunk + 1, 2 * chunk + 1)}, own{ledger.scored(1, chunk + 1)};
  EXPECT_ANY_THROW(learner.learn(other));
  learner.learn(own);
  EXPECT_ANY_THROW(learner.learn(own)) << "a second step on one chunk";
}

TEST(Lora, PhasesLearnFromTheDocumentsBefore) {
  Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = tiny_stream(900);
  const ScoreLedger without = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  recipe.score.lora.phases = 1;
  recipe.score.lora.phase_documents = 3;
  recipe.score.lora.phase_chunk = kContext;
  const ScoreLedger with = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  const int64_t fourth = document_ranges(stream, 1)[3].first;
  ASSERT_GT(fourth, kContext + 1);  // else there is no chunk to learn from
  EXPECT_TRUE(same_records(without, with, fourth));
  EXPECT_NE(without.digest(fourth), with.digest(fourth));
}

// Before the phases, between them and after them; a document's inside, its edges, one target.
TEST(Lora, ScoresOfWhatIsWantedAreThoseOfTheWholeStream) {
  Recipe recipe = tiny_recipe();
  recipe.score.lora.phases = 2;
  recipe.score.lora.phase_documents = 6;
  recipe.score.lora.phase_chunk = kContext;
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = tiny_stream(1500);
  const ScoreSettings settings = settings_of(recipe, ScoreMode::lora_ttt);
  const ScoreLedger truth = score(model, settings, stream);
  const std::vector<DocumentRange> documents = document_ranges(stream, 1);
  ASSERT_GT(documents.size(), 10U);
  Machine machine;
  const auto evaluator = make_evaluator(model, settings, machine.context());
  const int64_t middle = documents[4].first + documents[4].count() / 2, last = documents[9].first;
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{1, 1},
                                   {1, documents[1].first},
                                   {1, middle},
                                   {middle, middle + 1},
                                   {1, last + 1},
                                   {last, last + 1},
                                   {1, last + 17},
                                   {1500, 1501}}) {
    ScoreLedger ledger(stream);
    ledger.want({begin, end});
    evaluator->run(ledger, {});
    for (int64_t target = begin; target < end; ++target) {
      ASSERT_EQ(ledger.times_scored(target), 1) << begin << " " << end << " " << target;
      ASSERT_EQ(ledger.digest(target), truth.digest(target)) << begin << " " << end << " " << target;
    }
    for (int64_t target = end; target <= 1500; ++target) ASSERT_FALSE(ledger.is_scored(target));
  }
  ScoreLedger alone(stream);
  alone.want({last, last + 1});
  evaluator->run(alone, {});
  EXPECT_FALSE(alone.is_scored(documents[7].first)) << "nothing needs this document";
}

// Loss and gradients of the adapted model on two documents of a store for three, by the reference backend.
class AdaptedModel {
 public:
  explicit AdaptedModel(const Recipe& recipe)
      : adapters_(adapter_table(recipe.model, {recipe.score.lora.sites, 3, kDocuments + 1}, recipe.model.loop.count > 0),
                  ParamStore::Gradients::kept),
        params_(parameter_table(recipe), ParamStore::Gradients::none),
        io_("inputs", 1 << 16) {
    const ScoredModel model = tiny_model(recipe);
    model.load(params_);
    Rng rng(4);
    for (int64_t i = 0; i < adapters_.flat_values().numel(); ++i)
      adapters_.flat_values().as<float>()[i] = static_cast<float>(0.1 * rng.normal());
    extra_ = {&adapters_, recipe.score.lora.sites, kDocuments, 1.5};
    ModelInputs inputs;
    inputs.tokens = io_.make("tokens", {{kDocuments * kRow}, DType::i32});
    inputs.targets = io_.make("targets", {{kDocuments * kRow}, DType::i32});
    inputs.rope = io_.make("rope", {rope_shape(recipe, kRow), DType::f32});
    inputs.loss_gradient = io_.make("one", {{1}, DType::f32});
    *inputs.loss_gradient.as<float>() = 1;
    inputs.row_length = kRow;
    inputs.adapters = &extra_;
    fill_rope(recipe, inputs.rope);
    for (int64_t i = 0; i < kDocuments * kRow; ++i) {
      inputs.tokens.as<int32_t>()[i] = static_cast<int32_t>(3 + i % 17);
      inputs.targets.as<int32_t>()[i] = static_cast<int32_t>(4 + i * 5 % 40);
    }
    Tape tape;
    outputs_ = build_model(tape, recipe, params_, inputs, model.stage);
    session_ = executor_->open(std::move(tape).finish(outputs_.loss, tape.input("one", inputs.loss_gradient)));
  }
  double loss() {
    std::memset(adapters_.flat_grads().data, 0, adapters_.flat_grads().spec.bytes());
    session_->run();
    const Tensor nll = session_->fetch(outputs_.nll.id);
    double sum = 0;
    for (int64_t i = 0; i < kDocuments * kRow; ++i) sum += static_cast<double>(nll.as<float>()[i]);
    return sum / static_cast<double>(kDocuments * kRow);
  }
  const ParamStore& adapters() const { return adapters_; }

 private:
  static constexpr int64_t kRow = 8, kDocuments = 2;
  ParamStore adapters_, params_;
  Arena io_;
  AdapterInputs extra_;
  ModelOutputs outputs_;
  Queue queue_{1};
  std::unique_ptr<Executor> executor_ = make_ref_executor(queue_);
  std::unique_ptr<Session> session_;
};

TEST(Lora, GradientsOfEverySiteEqualDifferences) {
  for (const bool lanes : {false, true}) {
    AdaptedModel model(tiny_recipe(lanes));
    model.loss();
    for (const ParamBank& bank : model.adapters().banks()) {
      int64_t at = 0;  // the entry that matters most
      const auto gradient = [&](int64_t i) { return static_cast<double>(bank.grad.as<float>()[i]); };
      for (int64_t i = 0; i < bank.grad.numel(); ++i)
        if (std::abs(gradient(i)) > std::abs(gradient(at))) at = i;
      const double expected = gradient(at);
      ASSERT_NE(expected, 0) << bank.info.name;
      float& value = bank.value.as<float>()[at];
      const float old = value, step = 0.01f;
      value = old + step;
      const double up = model.loss();
      value = old - step;
      const double down = model.loss();
      value = old;
      model.loss();
      const double difference = (up - down) / (2 * static_cast<double>(step));
      EXPECT_TRUE(std::abs(difference - expected) <= 0.02 * std::abs(expected) + 1e-4)
          << bank.info.name << ": " << expected << " against " << difference;
    }
  }
}

TEST(Lora, OnlyTheSitesOfTheRecipeHaveAdapters) {
  Recipe recipe = tiny_recipe();
  recipe.score.lora.sites.k = false;
  const auto table = adapter_table(recipe.model, {recipe.score.lora.sites, 3, 2}, true);
  EXPECT_EQ(table.size(), 10U);
  for (const ParamInfo& info : table) EXPECT_FALSE(info.name.starts_with("lora.k.")) << info.name;
  const std::vector<uint16_t> stream = one_document(60);
  const ScoredModel model = tiny_model(recipe);
  const ScoreLedger without = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  recipe.score.lora.sites.k = true;
  const ScoreLedger with = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  const int64_t second = recipe.score.lora.chunk + 1;
  EXPECT_TRUE(same_records(without, with, second));
  EXPECT_NE(without.digest(second), with.digest(second));
}

TEST(Lora, EachSiteLearnsAlone) {
  const std::vector<uint16_t> stream = one_document(60);
  Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const ScoreLedger plain = score(model, settings_of(recipe, ScoreMode::plain), stream);
  for (bool LoraSites::*site :
       {&LoraSites::q, &LoraSites::k, &LoraSites::v, &LoraSites::o, &LoraSites::mlp, &LoraSites::head}) {
    recipe.score.lora.sites = {false, false, false, false, false, false};
    recipe.score.lora.sites.*site = true;
    const ScoreLedger one = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
    EXPECT_EQ(one.nll(1), plain.nll(1));
    EXPECT_NE(one.nll(recipe.score.lora.chunk + 1), plain.nll(recipe.score.lora.chunk + 1));
  }
}

// Documents of 30, 60, 90, 45 and 75 targets.
std::vector<uint16_t> five_documents() {
  std::vector<uint16_t> stream{1};
  const std::vector<uint16_t> text = one_document(100);
  for (const int64_t targets : {30, 60, 90, 45, 75}) {
    stream.insert(stream.end(), text.begin() + 1, text.begin() + targets);
    stream.push_back(1);
  }
  return stream;
}

// Two at once: the one left over, of 90 targets, comes first, then those of 75 and 60, then those of 45 and 30.
TEST(LoraCompat, TheLongestDocumentsComeFirstAndLeaveTheirAToTheNext) {
  Recipe recipe = tiny_recipe();
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = five_documents();
  const ScoreSettings strict = settings_of(recipe, ScoreMode::lora_ttt);
  ScoreSettings compat = strict;
  compat.score.lora.order = LoraOrder::compat;
  compat.score.lora.batch = 2;
  EXPECT_TRUE(is_legal(strict));
  EXPECT_FALSE(is_legal(compat));
  const ScoreLedger cold = score(model, strict, stream), warm = score(model, compat, stream);
  EXPECT_TRUE(warm.complete());
  const int64_t chunk = recipe.score.lora.chunk;
  const auto differs = [&](int64_t first, int64_t targets) {
    for (int64_t target = first; target < first + targets; ++target)
      if (cold.digest(target) != warm.digest(target)) return true;
    return false;
  };
  EXPECT_FALSE(differs(91, 90)) << "the first batch begins cold";
  EXPECT_FALSE(differs(226, 75)) << "the second has another size, and begins cold too";
  EXPECT_FALSE(differs(31, 60));
  EXPECT_FALSE(differs(1, chunk)) << "B is zero until the first step";
  EXPECT_TRUE(differs(1 + chunk, 30 - chunk)) << "A is the one of the batch before";
  EXPECT_TRUE(differs(181 + chunk, 45 - chunk));
}

// With one phase after three documents: the batch of two ends first, then the shortest two of the three are learned.
TEST(LoraCompat, APhaseWaitsForItsBatchAndLearnsTheShortest) {
  Recipe recipe = tiny_recipe();
  recipe.score.lora.phases = 1;
  recipe.score.lora.phase_documents = 2;
  recipe.score.lora.phase_chunk = kContext / 2;
  recipe.score.context = kContext / 2;
  recipe.score.lora.phase_lr = 0.05;
  recipe.score.lora.order = LoraOrder::compat;
  recipe.score.lora.batch = 2;
  const ScoredModel model = tiny_model(recipe);
  const std::vector<uint16_t> stream = five_documents();
  const ScoreLedger ledger = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  std::vector<std::pair<int64_t, int64_t>> learned;
  for (const ScoreEvent& event : ledger.events())
    if (event.kind == EventKind::update && event.end - event.begin > recipe.score.lora.chunk)
      learned.emplace_back(event.begin, event.end);
  EXPECT_EQ(learned, (std::vector<std::pair<int64_t, int64_t>>{{31, 91}, {226, 301}}));
  recipe.score.lora.phase_lr = 0;
  const ScoreLedger without = score(model, settings_of(recipe, ScoreMode::lora_ttt), stream);
  EXPECT_EQ(without.digest(91), ledger.digest(91));
  EXPECT_EQ(without.digest(226), ledger.digest(226));
  EXPECT_NE(without.digest(1), ledger.digest(1)) << "scored after the phase";
  EXPECT_NE(without.digest(181), ledger.digest(181));
}

}  // namespace
}  // namespace fairway::score_test
