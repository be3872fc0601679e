// Whole programs on the device: bf16 near float, graphs and single calls bit-equal, runs repeatable.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "base/rng.h"
#include "ops/cuda/device.h"
#include "train/trainer.h"

namespace fairway {
namespace {

constexpr int64_t kLength = 256, kTokens = 5 * kLength;  // enough rows for the fused kernels

Recipe small(const std::string& name) {
  Recipe recipe = load_recipe(name, {});
  recipe.data.seq_len = kLength;
  recipe.data.sampler = SamplerKind::sequential;
  recipe.train.batch_tokens = recipe.train.micro_batch_tokens = kTokens;
  recipe.train.emulated_world = 1;
  return recipe;
}

// A trainer with weights off their start, and one random batch.
struct Bench {
  Bench(const Recipe& recipe, Backend backend)
      : executor(make_executor(backend, queue)), trainer(recipe, micro_batch_geometry(recipe), *executor) {
    trainer.initialize(1, queue.pool());
    Rng rng(5);
    float* values = trainer.params().flat_values().as<float>();
    for (int64_t i = 0; i < trainer.params().flat_values().numel(); ++i) values[i] += static_cast<float>(0.02 * rng.normal());
    trainer.begin_averages();
    for (auto* list : {&tokens, &targets})
      for (int64_t i = 0; i < kTokens; ++i)
        list->push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(recipe.model.vocab))));
    if (recipe.data.sampler != SamplerKind::docpack) return;
    for (int32_t i = 0, start = 0; i < kTokens; ++i) {  // documents of 1 to 300 tokens, so that tiles see several and parts
      if (rng.below(150) == 0) start = i;
      starts.push_back(start);
    }
  }
  MicroBatch batch() {
    const Spec spec{{kTokens}, DType::i32};
    return {make_view(tokens.data(), spec), make_view(targets.data(), spec),
            starts.empty() ? Tensor{} : make_view(starts.data(), spec)};
  }
  // Gradients of one pass.
  std::vector<float> gradients() {
    trainer.optimizer().begin_rank();
    trainer.load(batch(), 1);
    trainer.session({}).run();
    const Tensor flat = trainer.params().flat_grads();
    executor->download(flat);
    return {flat.as<float>(), flat.as<float>() + flat.numel()};
  }
  std::vector<float> weights_after(int64_t steps) {
    for (int64_t step = 1; step <= steps; ++step)
      losses.push_back(trainer.step([&] { return batch(); }, {.momentum = 0.9, .step = step}, {}).loss);
    trainer.fetch_state();
    const Tensor flat = trainer.params().flat_values();
    return {flat.as<float>(), flat.as<float>() + flat.numel()};
  }

  Queue queue{2};
  std::unique_ptr<Executor> executor;
  Trainer trainer;
  std::vector<int32_t> tokens, targets, starts;
  std::vector<double> losses;
};

double relative_error(const std::vector<float>& have, const std::vector<float>& want) {
  double error = 0, power = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(static_cast<double>(have[i]) - static_cast<double>(want[i]), 2);
    power += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(error / power);
}

bool bit_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class CudaProgram : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (cuda::devices().empty()) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_P(CudaProgram, FloatGradientsAreThoseOfTheCpu) {
  const Recipe recipe = small(GetParam());
  Bench cpu(recipe, Backend::cpu), device(recipe, Backend::cuda_f32);
  const double error = relative_error(device.gradients(), cpu.gradients());
  EXPECT_TRUE(error <= 1e-4) << error;
}

TEST_P(CudaProgram, HalfGradientsAreNearThoseInFloat) {
  const Recipe recipe = small(GetParam());
  Bench wide(recipe, Backend::cuda_f32), half(recipe, Backend::cuda);
  const double error = relative_error(half.gradients(), wide.gradients());
  EXPECT_TRUE(error <= 0.05) << error;
}

TEST_P(CudaProgram, PackedDocumentsInHalvesAreNearThoseInFloat) {
  Recipe recipe = small(GetParam());
  recipe.data.sampler = SamplerKind::docpack;
  Bench wide(recipe, Backend::cuda_f32), half(recipe, Backend::cuda), again(recipe, Backend::cuda);
  const auto gradients = half.gradients();
  const double error = relative_error(gradients, wide.gradients());
  EXPECT_TRUE(error <= 0.05) << error;
  EXPECT_TRUE(bit_equal(again.gradients(), gradients));
}

TEST_P(CudaProgram, GraphsRepeatSingleCalls) {
  const Recipe recipe = small(GetParam());
  for (Backend backend : {Backend::cuda, Backend::cuda_f32}) {
    Bench bench(recipe, backend);
    const auto eager = bench.gradients();
    EXPECT_TRUE(bit_equal(bench.gradients(), eager)) << "captured";
    EXPECT_TRUE(bit_equal(bench.gradients(), eager)) << "replayed";
  }
}

TEST_P(CudaProgram, RunsOfOneSeedAreBitEqual) {
  const Recipe recipe = small(GetParam());
  Bench one(recipe, Backend::cuda), two(recipe, Backend::cuda);
  EXPECT_TRUE(bit_equal(one.weights_after(20), two.weights_after(20)));
  EXPECT_LT(one.losses.back(), one.losses.front());
}

INSTANTIATE_TEST_SUITE_P(Recipes, CudaProgram, testing::Values("pr1105", "pr1584"));

}  // namespace
}  // namespace fairway
