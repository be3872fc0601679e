// Parameter counts against spec §3.3, layer orders against §5.1, FLOPs against §14.1.
#include "model/shape/model_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace fairway {
namespace {

std::map<std::string, int64_t> counts_by_folder(const ModelRecipe& model) {
  std::map<std::string, int64_t> counts;
  for (const ParamInfo& info : parameter_table(model)) counts[info.name.substr(0, info.name.find('.'))] += info.count();
  return counts;
}

struct Row {
  const char* name;
  int64_t bank, embed, bigram, value_embed, other, total;
};
constexpr Row kTable[] = {
    {"pr726", 25952256, 524288, 327681, 163843, 25688, 26993756},
    {"pr1072", 25952256, 524288, 589825, 163843, 25688, 27255900},
    {"pr1105-early", 25952256, 524288, 401409, 163843, 25688, 27067484},
    {"pr1105", 28835840, 524288, 401409, 163843, 25688, 29951068},
    {"pr1584", 31719424, 4194304, 0, 0, 30874, 35944602},
    {"best", 31719424, 4194304, 0, 0, 31943, 35945671},
    {"record", 31719424, 4194304, 0, 0, 31943, 35945671},
};

TEST(ModelShape, ParameterCountsEqualThePublishedTable) {
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.name);
    const ModelRecipe model = load_recipe(row.name).model;
    auto counts = counts_by_folder(model);
    EXPECT_EQ(counts["bank"], row.bank);
    EXPECT_EQ(counts["embed"], row.embed);
    EXPECT_EQ(counts["bigram"], row.bigram);
    EXPECT_EQ(counts["value_embed"], row.value_embed);
    EXPECT_EQ(counts["block"] + counts["skip"] + counts["smear"] + counts["lane"], row.other);
    EXPECT_EQ(parameter_count(model), row.total);
  }
}

TEST(ModelShape, TheUnlistedFinalBranchOf1105CountsToo) {
  const std::vector<std::string> changes{"model.vocab=4608", "model.loop.count=0", "model.loop.start=0", "model.loop.end=0",
                                         "model.lanes.start=-1"};
  EXPECT_EQ(parameter_count(load_recipe("pr1584", changes).model), 34106456);
}

TEST(ModelShape, RolesFollowTheOptimizerGroups) {
  const auto role = [](const Recipe& recipe, std::string_view name) {
    for (const ParamInfo& info : parameter_table(recipe)) {
      if (info.name == name) return info.role;
    }
    ADD_FAILURE() << name << " is missing";
    return ParamRole::scalar;
  };
  const Recipe pr1105 = load_recipe("pr1105"), pr1072 = load_recipe("pr1072");
  for (const char* bank : {"bank.qo", "bank.kv", "bank.up", "bank.down"}) EXPECT_EQ(role(pr1105, bank), ParamRole::matrix);
  for (const char* name : {"embed.token", "bigram.table", "value_embed.table"}) EXPECT_EQ(role(pr1105, name), ParamRole::token);
  for (const char* name : {"bigram.proj", "value_embed.proj", "block.q_gain", "smear.gate", "bigram.scale"}) {
    EXPECT_EQ(role(pr1105, name), ParamRole::scalar);
  }
  EXPECT_EQ(role(pr1072, "bigram.proj"), ParamRole::matrix);
  EXPECT_EQ(role(pr1072, "value_embed.proj"), ParamRole::matrix);
}

TEST(ModelShape, ShapesAreTheInterchangeOnes) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const char* name : {"pr1105", "best"}) {
    for (const ParamInfo& info : parameter_table(load_recipe(name).model)) shapes[info.name] = info.shape;
  }
  const std::map<std::string, std::vector<int64_t>> expected{{"embed.token", {8192, 512}},
                                                             {"bank.qo", {22, 512, 512}},
                                                             {"bank.kv", {22, 256, 512}},
                                                             {"bank.up", {11, 2048, 512}},
                                                             {"bank.down", {11, 512, 2048}},
                                                             {"block.attn_scale", {11, 512}},
                                                             {"block.mlp_scale", {11, 512}},
                                                             {"block.resid_mix", {11, 2, 512}},
                                                             {"block.q_gain", {11, 8}},
                                                             {"block.attn_gate", {11, 8, 12}},
                                                             {"skip.weight", {8, 512}},
                                                             {"skip.gate", {8, 512}},
                                                             {"smear.gate", {512}},
                                                             {"smear.weight", {12}},
                                                             {"smear.lambda", {1}},
                                                             {"bigram.table", {3072, 112}},
                                                             {"bigram.proj", {512, 112}},
                                                             {"bigram.scale", {}},
                                                             {"value_embed.table", {1024, 128}},
                                                             {"value_embed.proj", {256, 128}},
                                                             {"value_embed.scale", {}},
                                                             {"value_embed.layer_scale", {2}},
                                                             {"lane.post", {11, 2, 2}},
                                                             {"lane.resid", {11, 2}}};
  EXPECT_EQ(shapes, expected);
}

TEST(ModelShape, LayerOrdersBeforeAndAfterTheLoop) {
  const ModelRecipe model = load_recipe("pr1584").model;
  const LayerOrder plain = layer_order(model, false), looped = layer_order(model, true);
  EXPECT_EQ(plain.layers, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(plain.encoder, 5);
  EXPECT_EQ(looped.layers, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(looped.encoder, 8);
  EXPECT_EQ(skip_count(model), 8);
  EXPECT_EQ(skip_count(load_recipe("pr1105").model), 5);
}

TEST(ModelShape, FlopsPerTokenEqualThePrintedTable) {
  const auto printed = [](const char* name, bool looped) {  // in millions, to one decimal
    return std::round(flops_per_token(load_recipe(name).model, 2048, looped) / 1e5) / 10;
  };
  EXPECT_DOUBLE_EQ(printed("pr1105-early", false), 240.1);
  EXPECT_DOUBLE_EQ(printed("pr1105", false), 257.4);
  EXPECT_DOUBLE_EQ(printed("pr1105", true), 257.4);
  EXPECT_DOUBLE_EQ(printed("pr1584", false), 296.2);
  EXPECT_DOUBLE_EQ(printed("pr1584", true), 444.1);
  EXPECT_DOUBLE_EQ(flops_per_token(load_recipe("pr1105").model, 2048, false), 6.0 * 29450240 + 7.0 * 2048 * 512 * 11);
}

}  // namespace
}  // namespace fairway
