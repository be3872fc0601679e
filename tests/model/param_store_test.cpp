// How parameters lie in memory: one bank after the other, aligned, with gradients at the same places.
#include "model/param_store.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace fairway {
namespace {

const std::vector<ParamInfo> kTable{
    {"a", {3, 5}, ParamRole::token, ParamId::embed_token}, {"b", {2, 4, 4}, ParamRole::matrix}, {"c", {}, ParamRole::scalar}};

TEST(ParamStore, BanksFollowEachOtherAligned) {
  for (DType real : {DType::f32, DType::f64}) {
    const ParamStore store(kTable, ParamStore::Gradients::kept, real);
    size_t expected = 0;
    for (const ParamBank& bank : store.banks()) {
      EXPECT_EQ(static_cast<size_t>(bank.value.data - store.flat_values().data), expected) << bank.info.name;
      EXPECT_EQ(bank.grad.data - store.flat_grads().data, bank.value.data - store.flat_values().data) << bank.info.name;
      EXPECT_EQ(bank.value.spec, bank.grad.spec);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bank.value.data) % kArenaAlignment, 0U);
      expected += align_up(bank.value.spec.bytes());
    }
    EXPECT_EQ(store.flat_values().spec.bytes(), expected);
    EXPECT_EQ(store.flat_grads().spec.bytes(), expected);
  }
}

TEST(ParamStore, StartsAtZeroWithItsPadding) {
  const ParamStore store(kTable, ParamStore::Gradients::kept);
  for (const Tensor& flat : {store.flat_values(), store.flat_grads()}) {
    for (int64_t i = 0; i < flat.numel(); ++i) EXPECT_EQ(flat.as<float>()[i], 0.0f);
  }
}

TEST(ParamStore, KeepsNamesShapesAndRoles) {
  const ParamStore store(kTable, ParamStore::Gradients::none);
  ASSERT_EQ(store.table().size(), kTable.size());
  for (size_t i = 0; i < kTable.size(); ++i) {
    EXPECT_EQ(store.table()[i].name, kTable[i].name);
    EXPECT_EQ(store.table()[i].shape, kTable[i].shape);
    EXPECT_EQ(store.table()[i].role, kTable[i].role);
  }
  EXPECT_EQ(store.banks()[1].value.spec.shape, (Shape{2, 4, 4}));
  EXPECT_EQ(store.banks()[2].value.spec.shape, Shape{1});  // a scalar takes one element
  EXPECT_TRUE(store.has(ParamId::embed_token));
  EXPECT_EQ(&store.bank(ParamId::embed_token), &store.banks()[0]);
  EXPECT_FALSE(store.has(ParamId::qo));
}

TEST(ParamStore, WithoutGradientsThereAreNone) {
  const ParamStore store(kTable, ParamStore::Gradients::none);
  EXPECT_FALSE(store.flat_grads());
  for (const ParamBank& bank : store.banks()) EXPECT_FALSE(bank.grad);
}

TEST(ParamStore, AnUnknownBankIsABrokenInvariant) {
  const ParamStore store(kTable, ParamStore::Gradients::none);
  EXPECT_THROW(store.bank(AdapterId{AdapterSite::q, AdapterFactor::a}), std::logic_error);
  EXPECT_THROW(store.bank(ParamId::qo), std::logic_error);
}

}  // namespace
}  // namespace fairway
