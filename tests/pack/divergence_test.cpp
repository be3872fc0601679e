// The divergence is nothing for the weights themselves, has the gradient that differences say, and falls when halves are tuned.
#include "pack/divergence.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/backends.h"
#include "base/half.h"
#include "generate/tiny_recipes.h"
#include "pack/tune_halves.h"
#include "quant/quantize_model.h"

namespace fairway::calibrate_test {
namespace {

using generate_test::randomize;
using generate_test::shrunk;
using generate_test::tokens_of;

constexpr int64_t kRowLength = 12, kMeasuredRows = KlDivergence::kTogether;

class DivergenceTest : public testing::Test {
 protected:
  void SetUp() override { randomize(params_); }

  struct Site {
    Site(Backend backend, int threads) : queue(threads), executor(make_executor(backend, queue)) {}
    Queue queue;
    std::unique_ptr<Executor> executor;
  };
  KlDivergence at(Site& site) {
    const CalibrationModel model{recipe_, params_, {}, *site.executor, site.queue};
    return KlDivergence(model, tokens_of(recipe_, 3 * kMeasuredRows * (kRowLength + 1), 5), kRowLength, kMeasuredRows);
  }
  // Every number as it is.
  QuantizedModel exactly(const ParamStore& from) const {
    QuantizedModel model{.model = recipe_.model};
    for (const ParamBank& bank : from.banks()) {
      const float* values = bank.value.as<float>();
      model.tensors.push_back({.bank = bank.info.row().id,
                               .rows = bank.value.rows(),
                               .cols = bank.value.cols(),
                               .coding = TensorCoding::single,
                               .singles = {values, values + bank.value.numel()}});
    }
    return model;
  }
  QuantizedModel rounded(int bits) {
    Recipe recipe = recipe_;
    recipe.quant.rule = QuantRule::rtn;
    recipe.quant.matrix_bits = recipe.quant.token_bits = recipe.quant.table_bits = bits;
    recipe.quant.clip = {.attn = 3, .mlp = 3, .token = 3, .table = 3};
    QuantReport report;
    Queue queue(2);
    return quantize_model(params_, recipe, nullptr, queue, report);
  }

  Recipe recipe_ = shrunk("pr1105");
  ParamStore params_{parameter_table(recipe_), ParamStore::Gradients::none};
};

TEST_F(DivergenceTest, GrowsWithTheError) {
  Site site(Backend::cpu, 2), alone(Backend::cpu, 1), reference(Backend::ref, 2);
  KlDivergence divergence = at(site);
  const double none = divergence.of(exactly(params_)), fine = divergence.of(rounded(7)), coarse = divergence.of(rounded(3));
  EXPECT_NEAR(none, 0, 1e-6);
  EXPECT_GT(fine, 1e-6);
  EXPECT_GT(coarse, 4 * fine);
  EXPECT_EQ(at(alone).of(rounded(3)), coarse) << "another number of threads";
  EXPECT_NEAR(at(reference).of(rounded(3)), coarse, 1e-3 * coarse);
}

TEST_F(DivergenceTest, HasTheGradientOfItsDifferences) {
  Site site(Backend::ref, 2);
  const std::vector<int32_t> text = tokens_of(recipe_, 2 * kMeasuredRows * (kRowLength + 1), 6);
  std::vector<int32_t> twice(text.begin(), text.begin() + static_cast<int64_t>(text.size()) / 2);
  twice.insert(twice.end(), twice.begin(), twice.begin() + static_cast<int64_t>(text.size()) / 2);
  const CalibrationModel model{recipe_, params_, {}, *site.executor, site.queue};
  KlDivergence divergence(model, twice, kRowLength, kMeasuredRows);  // the gradient's rows are those that are measured
  ParamStore moved(parameter_table(recipe_), ParamStore::Gradients::none);
  const auto shifted = [&](double by) {
    moved.set_values(params_.flat_values());
    const ParamBank& bank = moved.bank(ParamId::embed_token);
    for (int64_t i = 0; i < bank.value.numel(); ++i) bank.value.as<float>()[i] *= static_cast<float>(1 + by);
    return divergence.of(exactly(moved));
  };
  constexpr double kShift = 0.05, kStep = 0.01;
  const double difference = (shifted(kShift + kStep) - shifted(kShift - kStep)) / (2 * kStep);
  shifted(kShift);
  const ParamBank& bank = divergence.weights().bank(ParamId::embed_token);
  divergence.gradient(0, {&bank.grad, 1});
  double slope = 0;
  for (int64_t i = 0; i < bank.value.numel(); ++i)
    slope += static_cast<double>(bank.grad.as<float>()[i]) * static_cast<double>(bank.value.as<float>()[i]) / (1 + kShift);
  EXPECT_GT(slope, 0);
  EXPECT_NEAR(slope, difference, 0.02 * difference);
}

TEST_F(DivergenceTest, FallsWhenHalvesAreTuned) {
  Site site(Backend::cpu, 2), alone(Backend::cpu, 1);
  KlDivergence divergence = at(site), other = at(alone);
  QuantizedModel before = rounded(6);
  for (QuantizedTensor& tensor : before.tensors)
    for (uint16_t& half : tensor.halves) half = to_half(0.95F * from_half(half));
  QuantizedModel model = before, again = before;
  tune_halves(model, divergence);
  EXPECT_LT(divergence.of(model), 0.9 * divergence.of(before));
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    EXPECT_EQ(model.tensors[i].q, before.tensors[i].q);
    EXPECT_EQ(model.tensors[i].scale, before.tensors[i].scale);
  }
  tune_halves(again, other);
  EXPECT_EQ(again, model) << "another number of threads";
}

}  // namespace
}  // namespace fairway::calibrate_test
