// Adapters of many documents on the device (scoring spec §2.6), with the published width: the same records whatever stands
// beside a document, digests of the distributions that the host is told, and scores near the CPU's.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "base/rng.h"
#include "model/initialize.h"
#include "ops/cuda/device.h"
#include "score/evaluator.h"

namespace fairway {
namespace {

constexpr int64_t kTargets = 1300;

Recipe small_best() {
  Recipe recipe = load_recipe("best", {});
  recipe.model.layers = 5;
  recipe.model.loop = {.start = 1, .end = 2, .count = 1, .at_fraction = 0};
  recipe.model.lanes.start = 4;
  recipe.model.vocab = 1024;
  recipe.score.mode = {ScoreMode::lora_ttt};
  recipe.score.context = 256;
  recipe.score.lora.rank = 80;
  recipe.score.lora.lr = 1e-3;
  return recipe;
}

ScoredModel model_of(const Recipe& recipe) {
  const auto load = [recipe](ParamStore& to) {
    ThreadPool pool(2);
    initialize(to, recipe.model, 1, pool);
    Rng rng(5);
    float* values = to.flat_values().as<float>();
    for (int64_t i = 0; i < to.flat_values().numel(); ++i) values[i] += static_cast<float>(0.02 * rng.normal());
  };
  return {recipe, {.looped = true}, load, {}};
}

// Documents of 1 to 700 tokens.
std::vector<uint16_t> stream_of(const Recipe& recipe) {
  Rng rng(7);
  std::vector<uint16_t> out{static_cast<uint16_t>(recipe.model.bos)};
  while (static_cast<int64_t>(out.size()) <= kTargets) {
    const bool ends = rng.below(200) == 0;
    out.push_back(static_cast<uint16_t>(ends ? static_cast<uint64_t>(recipe.model.bos) : 3 + rng.below(40)));
  }
  return out;
}

struct Scored {
  ScoreLedger ledger;
  double mean = 0;
};

Scored scored(const Recipe& recipe, Backend backend, std::span<const uint16_t> stream, std::vector<int64_t> captured = {}) {
  Queue queue(2);
  const auto executor = make_executor(backend, queue);
  Scored out{ScoreLedger(stream)};
  out.ledger.capture(captured);
  make_evaluator(model_of(recipe), {.score = recipe.score}, {executor.get(), &queue.pool()})->run(out.ledger, {});
  for (int64_t target = 1; target <= kTargets; ++target) out.mean += static_cast<double>(out.ledger.nll(target)) / kTargets;
  return out;
}

class CudaAdapters : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (cuda::devices().empty()) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_P(CudaAdapters, DocumentsAtOnceChangeNoBit) {
  Recipe recipe = small_best();
  const std::vector<uint16_t> stream = stream_of(recipe);
  recipe.score.lora.batch = 1;
  const Scored truth = scored(recipe, GetParam(), stream);
  for (const int64_t batch : {3, 64}) {
    recipe.score.lora.batch = batch;
    const Scored have = scored(recipe, GetParam(), stream);
    int64_t different = 0;
    for (int64_t target = 1; target <= kTargets; ++target) {
      const float a = truth.ledger.nll(target), b = have.ledger.nll(target);
      different += std::memcmp(&a, &b, sizeof a) != 0 || truth.ledger.digest(target) != have.ledger.digest(target) ? 1 : 0;
      ASSERT_EQ(truth.ledger.version(target), have.ledger.version(target));
    }
    EXPECT_EQ(different, 0) << "of " << kTargets << " with " << batch << " at once";
  }
}

TEST_P(CudaAdapters, DigestsAreThoseOfTheDistributionsOnTheHost) {
  const Recipe recipe = small_best();
  const std::vector<uint16_t> stream = stream_of(recipe);
  const Scored plain = scored(recipe, GetParam(), stream), told = scored(recipe, GetParam(), stream, {1, 400, 900, kTargets});
  ASSERT_EQ(told.ledger.captures().size(), 4U);
  for (const auto& [target, values] : told.ledger.captures()) {
    ASSERT_EQ(values.size(), static_cast<size_t>(recipe.model.vocab));
    EXPECT_EQ(told.ledger.digest(target), plain.ledger.digest(target)) << target;
    EXPECT_NEAR(values[stream[static_cast<size_t>(target)]], -told.ledger.nll(target), 0.01) << target;
  }
}

TEST_P(CudaAdapters, ScoresAreNearTheCpus) {
  Recipe recipe = small_best();
  const std::vector<uint16_t> stream = stream_of(recipe);
  const Scored cpu = scored(recipe, Backend::cpu, stream), device = scored(recipe, GetParam(), stream);
  recipe.score.lora.lr = 0;
  EXPECT_LT(device.mean, scored(recipe, GetParam(), stream).mean - 0.05) << "nothing was learned";
  const double nats = GetParam() == Backend::cuda ? 2e-3 : 2e-5;
  EXPECT_TRUE(std::abs(device.mean - cpu.mean) <= nats) << device.mean << " against " << cpu.mean;
}

INSTANTIATE_TEST_SUITE_P(Backends, CudaAdapters, testing::Values(Backend::cuda, Backend::cuda_f32),
                         [](const auto& test) { return test.param == Backend::cuda ? "bf16" : "float"; });

}  // namespace
}  // namespace fairway
