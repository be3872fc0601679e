// Each feature, set so that it does nothing, gives the model that does not have it; set otherwise it does not.
#include <gmock/gmock.h>

#include "model/tiny_model.h"

namespace fairway::model_test {
namespace {

using Edit = std::function<void(TinyModel&)>;

std::vector<float> nll_of(const Recipe& recipe, const Edit& edit = {}, ModelStage stage = {}) {
  TinyModel model(recipe);
  if (edit) edit(model);
  return model.nll(some_tokens(recipe, 24), 12, stage);
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

constexpr double kSame = 2e-5, kDifferent = 1e-3;

class OffIsAbsent : public testing::Test {
 protected:
  void expect_off(const Edit& neutral) {
    const auto absent = nll_of(without_);
    EXPECT_LE(distance(nll_of(with_, neutral), absent), kSame);
    EXPECT_GT(distance(nll_of(with_), absent), kDifferent);
  }
  Recipe with_ = tiny_recipe(), without_ = tiny_recipe();
};

TEST_F(OffIsAbsent, Bigram) {
  with_.model.bigram = {.rows = 31, .dim = 6};
  expect_off([](TinyModel& m) { m.set("bigram.table", 0); });
  expect_off([](TinyModel& m) { m.set("bigram.scale", 0); });
}

TEST_F(OffIsAbsent, ValueEmbedding) {
  with_.model.value_embed = {.dim = 6, .layers = {1, 4}};
  expect_off([](TinyModel& m) { m.set("value_embed.scale", 0); });
  expect_off([](TinyModel& m) { m.set("value_embed.layer_scale", 0); });
}

TEST_F(OffIsAbsent, SmearGates) {
  with_.model.smear = SmearKind::input;
  expect_off([](TinyModel& m) { m.set("smear.lambda", 0); });
  with_.model.smear = SmearKind::constant;
  expect_off([](TinyModel& m) { m.set("smear.gate", -60); });
}

TEST_F(OffIsAbsent, Skips) {
  with_.model.skip = SkipKind::additive;
  expect_off([](TinyModel& m) { m.set("skip.weight", 0); });
  with_.model.skip = SkipKind::gated;
  expect_off([](TinyModel& m) { m.set("skip.gate", 60); });  // the "1" end of the lerp is x
}

TEST_F(OffIsAbsent, AttentionGateOfZeroHalvesTheHeads) {
  with_.model.attn_gate = AttnGateKind::sparse;
  expect_off([&](TinyModel& m) {
    m.set("block.attn_gate", 0);
    for (int64_t layer = 0; layer < with_.model.layers; ++layer) {
      const Tensor output = m.at("bank.qo").slice(with_.model.layers + layer);
      for (int64_t i = 0; i < output.numel(); ++i) output.as<float>()[i] *= 2;
    }
  });
}

TEST_F(OffIsAbsent, LanesOfNeutralLayers) {
  with_.model.lanes.start = 4;
  const Edit tail = [](TinyModel& m) { m.make_neutral(4), m.make_neutral(5); };
  const Edit lanes = [&](TinyModel& m) { tail(m), m.set("lane.resid", 1); };
  EXPECT_LE(distance(nll_of(with_, lanes), nll_of(without_, tail)), kSame);
  EXPECT_GT(distance(nll_of(with_), nll_of(without_)), kDifferent);
}

TEST_F(OffIsAbsent, LoopBeforeItBeginsAndOverNeutralLayers) {
  with_.model.loop = {.start = 2, .end = 3, .count = 2};
  const Edit neutral = [](TinyModel& m) { m.make_neutral(2), m.make_neutral(3); };
  EXPECT_EQ(nll_of(with_), nll_of(without_));
  EXPECT_LE(distance(nll_of(with_, neutral, {.looped = true}), nll_of(without_, neutral)), kSame);
  EXPECT_GT(distance(nll_of(with_, {}, {.looped = true}), nll_of(without_)), kDifferent);
}

TEST_F(OffIsAbsent, FakeQuantizationOfWeightsOnTheGrid) {
  const Edit on_the_grid = [](TinyModel& m) {
    for (const char* name : {"bank.qo", "bank.kv", "bank.up", "bank.down"}) {
      const Tensor bank = m.at(name);
      for (int64_t i = 0; i < bank.numel(); ++i)  // multiples of 1/16, with 31/16 in every row
        bank.as<float>()[i] = static_cast<float>(i % bank.cols() == 0 ? 31 : (i * 37) % 61 - 30) / 16;
    }
  };
  with_.train.qat = {.enabled = true, .bits = 6};
  with_.quant.scale = ScaleRule::percentile;
  EXPECT_LE(distance(nll_of(with_, on_the_grid, {.fake_quant = true}), nll_of(without_, on_the_grid)), kSame);
  EXPECT_GT(distance(nll_of(with_, {}, {.fake_quant = true}), nll_of(without_)), kDifferent);
}

TEST_F(OffIsAbsent, XsaRemovesATokensOwnValue) {
  with_.model.xsa_first_layer = 3;
  TinyModel model(with_);
  int layers = 0;
  // In rows of one token attention returns the token's own value, and XSA takes it away.
  model.nll(some_tokens(with_, 5), 1, {}, {}, [&](std::string_view name, const Tensor& value) {
    if (!name.ends_with(".attn_out")) return;
    const std::vector<float> heads(value.as<float>(), value.as<float>() + value.numel());
    const double size = distance(heads, std::vector<float>(heads.size()));
    if (layers++ < 3) {
      EXPECT_GT(size, 1e-2) << name;
    } else {
      EXPECT_LE(size, 1e-5) << name;
    }
  });
  EXPECT_EQ(layers, 6);
}

TEST_F(OffIsAbsent, RotationAtPositionZero) {
  without_.model.rope.dims = 0;
  TinyModel on(with_), off(without_);
  const auto tokens = some_tokens(with_, 6);
  EXPECT_LE(distance(on.nll(tokens, 1), off.nll(tokens, 1)), kSame);
  EXPECT_GT(distance(on.nll(tokens, 6), off.nll(tokens, 6)), kDifferent);
}

}  // namespace
}  // namespace fairway::model_test
