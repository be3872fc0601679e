#include "quant/hessians.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fairway {
namespace {

using ::testing::HasSubstr;

Tensor rows_of(std::vector<float>& values, int64_t columns) {
  return make_view(values.data(), {{static_cast<int64_t>(values.size()) / columns, columns}, DType::f32});
}

TEST(Hessians, AreMeansOverBatchesOfBothTriangles) {
  Queue queue(2);
  HessianStore store(queue);
  std::vector<float> first{1, 2, 3, 4}, second{-1, 0.5F};
  store.accumulate("layer0.attn_in", rows_of(first, 2));
  store.end_batch();
  store.accumulate("layer0.attn_in", rows_of(second, 2));
  store.accumulate("layer0.attn_in", rows_of(second, 2));  // a looped layer is seen twice in one batch
  store.end_batch();
  EXPECT_TRUE(store.finish().empty());
  const Hessian* hessian = store.find("layer0.attn_in");
  ASSERT_NE(hessian, nullptr);
  EXPECT_EQ(hessian->values, (std::vector<double>{6, 6.5, 6.5, 10.25}));
  EXPECT_EQ(hessian->trace(), 16.25);
  EXPECT_EQ(store.find("layer1.attn_in"), nullptr);
}

TEST(Hessians, ForgettingWeighsEarlierBatchesLess) {
  Queue queue(1);
  HessianStore store(queue);
  std::vector<float> early{4}, late{1};
  store.accumulate("final", rows_of(early, 1));
  store.end_batch();
  store.forget(0.5);
  store.accumulate("final", rows_of(late, 1));
  store.end_batch();
  store.finish();
  EXPECT_DOUBLE_EQ(store.find("final")->at(0, 0), (0.5 * 16 + 1) / 1.5);
}

TEST(Hessians, PointsWithoutAWeightAreIgnored) {
  Queue queue(1);
  HessianStore store(queue);
  std::vector<float> rows{1, 2};
  for (const char* point : {"layer0.out", "logits", "elsewhere.attn_in"}) store.accumulate(point, rows_of(rows, 2));
  EXPECT_TRUE(store.empty());
}

TEST(Hessians, UnusableOnesAreDroppedWithASentence) {
  Queue queue(1);
  HessianStore store(queue);
  std::vector<float> bad{1, NAN}, zero{0, 0}, good{1, 2};
  store.accumulate("layer0.mlp_in", rows_of(bad, 2));
  store.accumulate("layer0.mlp_hidden", rows_of(zero, 2));
  store.accumulate("layer0.attn_out", rows_of(good, 2));
  store.end_batch();
  const auto problems = store.finish();
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_THAT(problems[0], HasSubstr("layer0.mlp_hidden is not used: the sum of its diagonal is 0"));
  EXPECT_THAT(problems[1], HasSubstr("layer0.mlp_in is not used: it holds a value that is not finite"));
  EXPECT_EQ(store.find("layer0.mlp_in"), nullptr);
  EXPECT_NE(store.find("layer0.attn_out"), nullptr);
}

TEST(Hessians, EveryWeightKnowsItsPoint) {
  ModelRecipe model;
  model.layers = 3;
  EXPECT_EQ(hessian_point(model, ParamId::qo, 2), "layer2.attn_in");
  EXPECT_EQ(hessian_point(model, ParamId::qo, 3), "layer0.attn_out");
  EXPECT_EQ(hessian_point(model, ParamId::kv, 1), "layer1.attn_in");
  EXPECT_EQ(hessian_point(model, ParamId::kv, 4), "layer1.attn_in");
  EXPECT_EQ(hessian_point(model, ParamId::up, 1), "layer1.mlp_in");
  EXPECT_EQ(hessian_point(model, ParamId::down, 0), "layer0.mlp_hidden");
  EXPECT_EQ(hessian_point(model, ParamId::embed_token, -1), "final");
  EXPECT_EQ(hessian_point(model, ParamId::bigram_table, -1), "");
}

TEST(Hessians, BitsDoNotDependOnThreads) {
  std::vector<float> rows(static_cast<size_t>(1500 * 150));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = std::sin(static_cast<float>(i) * 0.7F);
  std::vector<double> results[2];
  for (const int threads : {1, 2}) {
    Queue queue(threads);
    HessianStore store(queue);
    store.accumulate("final", rows_of(rows, 150));
    store.end_batch();
    store.finish();
    results[threads - 1] = store.find("final")->values;
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace fairway
