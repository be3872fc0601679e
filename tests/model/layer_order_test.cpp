// The recorded program follows the order and the skips of spec §4.4, §5.1 and §5.2.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "model/tiny_model.h"

namespace fairway::model_test {
namespace {

using testing::ElementsAre;

Recipe looped_recipe() {  // the layers of pr1584
  Recipe recipe = tiny_recipe();
  recipe.model.layers = 11;
  recipe.model.skip = SkipKind::gated;
  recipe.model.loop = {.start = 3, .end = 5, .count = 2};
  recipe.model.lanes.start = 8;
  return recipe;
}

// Blocks by their passes, and each skip as "index: target ← source", e.g. "1: 3#3 ← 3#2".
struct Walk {
  std::vector<std::string> blocks, skips;
};

Walk walk(const Program& program) {
  Walk out;
  std::map<std::string, int> passes;
  std::map<int32_t, std::string> maker;  // of each value
  std::string index, source, current;    // of the skip before the next block
  for (const Call& call : program.calls) {
    if (op_name(call.op) == "skip") {
      const auto in = by_name<Skip::InOf>(call.in);
      index = call.label.substr(4), source = maker.at(in.skip);
      EXPECT_EQ(program.values[static_cast<size_t>(in.weight)].name, "skip.weight[" + index + "]");
      EXPECT_EQ(program.values[static_cast<size_t>(in.gate)].name, "skip.gate[" + index + "]");
    }
    if (op_name(call.op) == "mix_norm") {
      const std::string layer = call.label.substr(5);
      current = layer;
      if (++passes[layer] > 1) current += fmt::format("#{}", passes[layer]);
      out.blocks.push_back(current);
      if (!index.empty()) out.skips.push_back(fmt::format("{}: {} ← {}", index, current, source));
      index.clear();
    }
    for (int32_t id : call.out) maker[id] = current;
  }
  return out;
}

TEST(LayerOrder, BeforeTheLoopBegins) {
  const Walk found = walk(TinyModel(looped_recipe()).program());
  EXPECT_THAT(found.blocks, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"));
  EXPECT_THAT(found.skips, ElementsAre("0: 5 ← 4", "1: 6 ← 3", "2: 7 ← 2", "3: 8 ← 1", "4: 9 ← 0"));
}

TEST(LayerOrder, AfterIt) {
  const Walk found = walk(TinyModel(looped_recipe()).program({.looped = true}));
  EXPECT_THAT(found.blocks,
              ElementsAre("0", "1", "2", "3", "4", "5", "3#2", "4#2", "5#2", "3#3", "4#3", "5#3", "6", "7", "8", "9", "10"));
  EXPECT_THAT(found.skips, ElementsAre("0: 5#2 ← 4#2", "1: 3#3 ← 3#2", "2: 4#3 ← 5", "3: 5#3 ← 4", "4: 6 ← 3", "5: 7 ← 2",
                                       "6: 8 ← 1", "7: 9 ← 0"));
}

TEST(LayerOrder, OnlyTheAttentionLaneTakesSkips) {
  const Program program = TinyModel(looped_recipe()).program();
  std::map<int32_t, const Call*> maker;
  int mixes = 0;
  for (const Call& call : program.calls) {
    for (int32_t id : call.out) maker[id] = &call;
    if (op_name(call.op) == "lane_mix") {
      ++mixes;
      const bool skipped = call.label != "block10";  // layer 10 has none
      const auto in = by_name<LaneMix::InOf>(call.in);
      EXPECT_EQ(op_name(maker.at(in.lane0)->op) == "skip", skipped) << call.label;
      EXPECT_NE(op_name(maker.at(in.lane1)->op), "skip") << call.label;
    }
  }
  EXPECT_EQ(mixes, 3);
}

TEST(LayerOrder, ObservePointsAreToldAsTheyAreMade) {
  Recipe recipe = tiny_recipe();
  recipe.model.layers = 3;
  recipe.model.lanes.start = 2;
  recipe.model.loop = {.start = 1, .end = 1, .count = 1};
  std::vector<std::string> names;
  TinyModel(recipe).nll(some_tokens(recipe, 12), 12, {.looped = true}, {},
                        [&](std::string_view name, const Tensor&) { names.emplace_back(name); });
  std::vector<std::string> expected;
  for (const char* layer : {"layer0", "layer1", "layer1", "layer2"})
    for (const char* point : {".attn_in", ".q", ".k", ".attn_out", ".mlp_in", ".mlp_hidden", ".out"})
      if (std::string(layer) != "layer2" || std::string(point) != ".out") expected.push_back(std::string(layer) + point);
  expected.insert(expected.end(), {"layer2.attn_lane", "layer2.mlp_lane", "final", "logits"});
  EXPECT_EQ(names, expected);
}

TEST(LayerOrder, NormedInputsAreScaledByThePhysicalLayer) {
  const Program program = TinyModel(looped_recipe()).program({.looped = true});
  for (const Call& call : program.calls) {
    const auto* mix = std::get_if<MixNorm>(&call.op);
    if (mix == nullptr) continue;
    EXPECT_DOUBLE_EQ(mix->scale, 1 / std::sqrt(std::stod(call.label.substr(5)) + 1)) << call.label;
  }
}

}  // namespace
}  // namespace fairway::model_test
