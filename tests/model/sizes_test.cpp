// Rotation frequencies (spec §4.7), packed documents (A.1), parameters (§3.3) and flops (§14.1) of the recorded model.
#include <gmock/gmock.h>

#include "model/tiny_model.h"

namespace fairway::model_test {
namespace {

// f_j from the angles at position 1.
std::vector<double> frequencies(const Recipe& recipe, int64_t positions) {
  std::vector<double> table(static_cast<size_t>(positions * recipe.model.rope.dims));
  fill_rope(recipe, make_view(table.data(), {rope_shape(recipe, positions), DType::f64}));
  const auto half = static_cast<size_t>(recipe.model.rope.dims / 2);
  std::vector<double> out;
  for (size_t j = 0; j < half; ++j) {
    EXPECT_EQ(table[j], 1);
    EXPECT_EQ(table[half + j], 0);
    out.push_back(std::atan2(table[3 * half + j], table[2 * half + j]));
  }
  return out;
}

void expect_frequencies(const char* name, const std::vector<double>& expected, double base) {
  const Recipe recipe = load_recipe(name);
  for (int64_t positions : {2, 700}) {  // a shorter table keeps the base of the training length (§16.2)
    const std::vector<double> have = frequencies(recipe, positions);
    ASSERT_EQ(have.size(), expected.size());
    for (size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(have[j], expected[j], 6e-9) << name << " " << j;
    EXPECT_NEAR(std::pow(have[7], -8.0 / 7), base, 1e-3) << name;
  }
}

TEST(Rope, TheBaseGrowsBeyondTheReferenceLength) {
  for (const char* name : {"pr726", "pr1105-early", "pr1105"})
    expect_frequencies(name, {1, .28641497, .08203354, .02349563, .0067295, .00192743, .00055204, .00015811}, 22081.790);
  for (const char* name : {"pr1072", "pr1584", "best", "record"})
    expect_frequencies(name, {1, .31622777, .1, .03162278, .01, .00316228, .001, .00031623}, 10000);
}

TEST(PackedDocuments, EachScoresAsIfAlone) {
  Recipe recipe = tiny_recipe();
  recipe.data.sampler = SamplerKind::docpack;
  recipe.model.smear = SmearKind::input;  // masked where a document begins
  recipe.model.skip = SkipKind::gated;
  recipe.model.xsa_first_layer = 0;
  recipe.model.attn_gate = AttnGateKind::sparse;
  recipe.model.lanes.start = 4;
  TinyModel model(recipe);
  std::vector<int32_t> first = some_tokens(recipe, 5, 1), second = some_tokens(recipe, 8, 2), packed;
  first[0] = second[0] = static_cast<int32_t>(recipe.model.bos);
  packed = first;
  packed.insert(packed.end(), second.begin(), second.end());
  std::vector<int32_t> starts(13, 0), whole(13, 0);
  std::fill(starts.begin() + 5, starts.end(), 5);
  const auto together = model.nll(packed, 13, {}, starts), mixed = model.nll(packed, 13, {}, whole);
  const auto a = model.nll(first, 5, {}, std::vector<int32_t>(5, 0)), b = model.nll(second, 8, {}, std::vector<int32_t>(8, 0));
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(together[i], a[i], 2e-5f) << i;  // the fifth has another target
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(together[5 + i], b[i], 2e-5f) << i;
  double difference = 0;
  for (size_t i = 0; i < 8; ++i) difference = std::max(difference, std::abs(static_cast<double>(mixed[5 + i] - b[i])));
  EXPECT_GT(difference, 1e-3);  // without starts the second document sees the first
}

TEST(Parameters, StoresHoldThePublishedCounts) {
  const std::vector<std::pair<const char*, int64_t>> table{
      {"pr726", 26993756},  {"pr1072", 27255900}, {"pr1105-early", 27067484}, {"pr1105", 29951068},
      {"pr1584", 35944602}, {"best", 35945671},   {"record", 35945671}};
  for (const auto& [name, expected] : table) {
    const ParamStore store(parameter_table(load_recipe(name)), ParamStore::Gradients::none);
    int64_t total = 0;
    for (const ParamBank& bank : store.banks()) total += bank.value.numel();
    EXPECT_EQ(total, expected) << name;
  }
}

// A call of the forward pass costs three times its flops with its backward pass; attention, which recomputes its scores, 3.5
// times. Over the program that is exactly the formula's 6·P_mm + 7·T·D·L_v per token.
TEST(Flops, OfTheProgramAreTheFormulas) {
  Recipe recipe = tiny_recipe();
  recipe.model.bigram = {.rows = 31, .dim = 6};
  recipe.model.value_embed = {.dim = 6, .layers = {1, 4}};
  recipe.model.loop = {.start = 1, .end = 2, .count = 2};
  for (const bool looped : {false, true}) {
    const Program program = TinyModel(recipe).program({.looped = looped});
    double total = 0;
    for (const Call& call : program.calls) total += call.flops * (op_name(call.op) == "attention" ? 3.5 : 3);
    EXPECT_DOUBLE_EQ(total, 12 * flops_per_token(recipe.model, 12, looped)) << looped;
    EXPECT_LT(forward_flops(program), total / 3);
    EXPECT_GT(forward_flops(program), total / 3.5);
  }
}

}  // namespace
}  // namespace fairway::model_test
