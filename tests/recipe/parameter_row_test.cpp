// What the rows say that files and published runs depend on.
#include "model/shape/parameter_row.h"

#include <gtest/gtest.h>

#include "model/shape/model_shape.h"

namespace fairway {
namespace {

TEST(ParameterRow, NumbersInFilesNeverMove) {
  const std::vector<std::string> stored{"embed.token",       "bank.qo",
                                        "bank.kv",           "bank.up",
                                        "bank.down",         "block.attn_scale",
                                        "block.mlp_scale",   "block.resid_mix",
                                        "block.q_gain",      "block.attn_gate",
                                        "skip.weight",       "skip.gate",
                                        "smear.gate",        "smear.weight",
                                        "smear.lambda",      "bigram.table",
                                        "bigram.proj",       "bigram.scale",
                                        "value_embed.table", "value_embed.proj",
                                        "value_embed.scale", "value_embed.layer_scale",
                                        "lane.post",         "lane.resid"};
  ASSERT_EQ(stored.size(), kParamCount);
  for (size_t i = 0; i < stored.size(); ++i) EXPECT_EQ(name_of(static_cast<ParamId>(i)), stored[i]);
}

TEST(ParameterRow, ABankOfTwoKindsChangesAtTheLayerCount) {
  constexpr int64_t kLayers = 3;
  const auto kind = [](ParamId id, int64_t slice) { return row_of(id).kind_of(slice, kLayers); };
  EXPECT_EQ(kind(ParamId::qo, 2).quant, QuantRole::q);
  EXPECT_EQ(kind(ParamId::qo, 3).quant, QuantRole::o);
  EXPECT_EQ(kind(ParamId::kv, 2).stream, StreamRole::key);
  EXPECT_EQ(kind(ParamId::kv, 3).stream, StreamRole::value);
  EXPECT_EQ(kind(ParamId::up, 3).stream, StreamRole::up) << "one kind has no boundary";
  EXPECT_EQ(kind(ParamId::qo, -1).stream, StreamRole::query) << "a whole bank goes with its first kind";
}

TEST(ParameterRow, WeightsThatMultiplyVectorsSayWhichOnes) {
  for (size_t i = 0; i < kParamCount; ++i) {
    const ParamRow& row = row_of(static_cast<ParamId>(i));
    const bool multiplies = is_layer_matrix(row.kind.quant) || row.kind.quant == QuantRole::token;
    EXPECT_EQ(is_hessian_point(point_name(row.kind.input, 4)), multiplies) << row.name;
    EXPECT_EQ(row.block == BlockPart::matrices, is_layer_matrix(row.kind.quant)) << row.name;
  }
  EXPECT_EQ(point_name(InputPoint::attn_out, 4), "layer4.attn_out");
  EXPECT_FALSE(is_hessian_point("layer4.out"));
  EXPECT_FALSE(is_hessian_point("logits"));
}

TEST(ParameterRow, ATensorIsNamedByItsParameterAndSlice) {
  EXPECT_EQ(tensor_name(ParamId::up, 3), "bank.up[3]");
  EXPECT_EQ(tensor_name(ParamId::embed_token, -1), "embed.token");
}

TEST(ParameterRow, ATableWithoutItIsABrokenInvariant) {
  const ParamInfo adapter{"lora.q.a", {4, 2}};
  EXPECT_THROW(adapter.row(), std::logic_error);
}

}  // namespace
}  // namespace fairway
