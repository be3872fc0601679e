// Decoding with integer weights gives the scorer's logits of the same quantized model, for every recipe and stage, with the
// same bits on any number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "generate/decoder.h"
#include "generate/packed_executor.h"
#include "generate/scored_logits.h"

namespace fairway::generate_test {
namespace {

constexpr int64_t kLength = 37;

std::vector<std::vector<float>> decoded(const QuantizedModel& model, const Recipe& recipe, ModelStage stage,
                                        const std::vector<int32_t>& tokens, int threads) {
  Queue queue(threads);
  const PackedWeights weights(model, queue.pool());
  PackedExecutor executor(weights, queue);
  Decoder decoder(recipe, weights.params(), 1, kLength, stage, executor);
  std::vector<std::vector<float>> out;
  for (const int32_t token : tokens) {
    decoder.step({&token, 1});
    out.emplace_back(decoder.logits(0).begin(), decoder.logits(0).end());
  }
  return out;
}

void expect_scorers_logits(const Recipe& recipe, ModelStage stage, const QuantizedModel& model) {
  const std::vector<int32_t> tokens = tokens_of(recipe, kLength, 3);
  const auto want = scored(model, recipe, stage, tokens), got = decoded(model, recipe, stage, tokens, 2);
  for (size_t t = 0; t < tokens.size(); ++t) ASSERT_LE(distance(got[t], want[t]), 3e-5) << "token " << t;
}

void expect_scorers_logits(const Recipe& recipe, ModelStage stage) { expect_scorers_logits(recipe, stage, quantized(recipe)); }

TEST(PackedDecoding, GivesTheScorersLogits) {
  for (const StageCase& stage : every_stage()) {
    SCOPED_TRACE(stage.name + (stage.looped ? " looped" : ""));
    expect_scorers_logits(shrunk(stage.name), {.looped = stage.looped});
  }
}

TEST(PackedDecoding, TakesEveryWidthAndCorrections) {
  for (int bits = 3; bits <= 8; ++bits) {
    SCOPED_TRACE(bits);
    Recipe recipe = shrunk("pr1105");
    recipe.quant.matrix_bits = recipe.quant.token_bits = bits;
    recipe.quant.lqer.tensors = bits % 2 == 0 ? 5 : 0;
    recipe.quant.lqer.rank = 4;
    expect_scorers_logits(recipe, {});
  }
}

// Of Q, K and V the last two share their columns' steps, the first has others; the token table is looked up and multiplied.
TEST(PackedDecoding, TakesStepsByColumn) {
  const Recipe recipe = shrunk("pr1105");
  QuantizedModel model = quantized(recipe);
  for (QuantizedTensor& t : model.tensors) {
    if (t.coding != TensorCoding::integer_rows) continue;
    const int64_t many = t.bank == ParamId::qo ? 7 : 5;
    for (int64_t j = 0; j < t.cols; ++j) t.columns.push_back(static_cast<int8_t>(j * 3 % many - many / 2));
  }
  expect_scorers_logits(recipe, {}, model);
}

TEST(PackedDecoding, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Recipe recipe = shrunk("pr1105");
  const QuantizedModel model = quantized(recipe);
  const std::vector<int32_t> tokens = tokens_of(recipe, kLength, 4);
  const auto alone = decoded(model, recipe, {}, tokens, 1);
  EXPECT_EQ(alone, decoded(model, recipe, {}, tokens, 2));
  EXPECT_EQ(alone, decoded(model, recipe, {}, tokens, 3));
}

TEST(PackedDecoding, PacksTheMatricesAndHasNoFloatsOfThem) {
  const QuantizedModel model = quantized(shrunk("pr1105"));
  Queue queue(1);
  const PackedWeights weights(model, queue.pool());
  const auto bank = [&](ParamId id) -> const ParamBank& { return weights.params().bank(id); };
  EXPECT_NE(weights.find({bank(ParamId::up).number, 0}), nullptr);
  EXPECT_EQ(weights.find({bank(ParamId::up).number, bank(ParamId::up).value.dim(0)}), nullptr);
  EXPECT_NE(weights.find({bank(ParamId::embed_token).number}), nullptr);
  EXPECT_EQ(weights.find({bank(ParamId::attn_scale).number, 0}), nullptr);
  EXPECT_EQ(bank(ParamId::up).value.data, nullptr);
  EXPECT_EQ(bank(ParamId::embed_token).value.data, nullptr);
  EXPECT_NE(bank(ParamId::attn_scale).value.data, nullptr);
}

TEST(PackedDecoding, TellsAFailureAndGoesOn) {
  const Recipe recipe = shrunk("pr726");
  const QuantizedModel model = quantized(recipe);
  Queue queue(2);
  const PackedWeights weights(model, queue.pool());
  PackedExecutor executor(weights, queue);
  Decoder decoder(recipe, weights.params(), 1, kLength, {}, executor);
  const int32_t bad = 1000, good = 5;
  EXPECT_ANY_THROW(decoder.step({&bad, 1}));
  decoder.restart();
  decoder.step({&good, 1});
  EXPECT_TRUE(std::isfinite(decoder.logits(0)[0]));
}

}  // namespace
}  // namespace fairway::generate_test
