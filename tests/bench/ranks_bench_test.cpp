// Steps shared by ranks: one rank's are those of the trainer, other weights are noticed, and the prediction follows the passes.
#include "bench/ranks_bench.h"

#include <gmock/gmock.h>

#include "backends/backends.h"
#include "base/error.h"

namespace fairway::bench {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Recipe smoke() { return shared_recipe(load_recipe("smoke"), 4, 128); }

TEST(RanksBench, OneRankTakesTheSameStepsEveryTime) {
  Queue queue(1);
  const auto executor = make_executor(Backend::cpu, queue);
  const Recipe recipe = smoke();
  EXPECT_EQ(recipe.train.batch_tokens, 512);
  EXPECT_EQ(recipe.train.micro_batches(), 4);
  const auto run = [&](int steps) { return measure_shared_steps(recipe, steps, *executor, single_process(), queue.pool()); };
  const SharedSteps once = run(3), again = run(3), longer = run(4);
  EXPECT_EQ(once.weights.size(), 64U);
  EXPECT_EQ(once.weights, again.weights);
  EXPECT_EQ(once.loss, again.loss);
  EXPECT_NE(once.weights, longer.weights);  // they are those of the steps
  EXPECT_EQ(once.bytes_sent, 0);
  EXPECT_EQ(once.step.samples, 1);
  EXPECT_EQ(longer.step.samples, 2);
  EXPECT_GT(once.step.median, once.passes.median);  // four of them and an update
}

TEST(RanksBench, OtherWeightsAreNoticed) {
  const auto of = [](int ranks, const char* weights) { return SharedSteps{.ranks = ranks, .weights = weights}; };
  EXPECT_NO_THROW(require_same_weights({of(1, "aa"), of(2, "aa"), of(4, "aa")}));
  try {
    require_same_weights({of(1, "aa"), of(2, "aa"), of(4, "bb")});
    FAIL() << "other weights were taken";
  } catch (const WorkError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("4 ranks"), HasSubstr("than 1"), HasSubstr("aa"), HasSubstr("bb")));
  }
}

TEST(RanksBench, ThePredictionIsThePassesAndWhatIsNotHidden) {
  SharedSteps measured;
  measured.passes.median = 0.0629;
  for (const char* precision : {"f32", "bf16"}) {
    Recipe recipe = shared_recipe(
        load_recipe("pr1105", std::vector<std::string>{std::string("optim.exchange_precision=") + precision}), 8, 98304);
    const StepModel model = predict_step(recipe, find_gpu("h200"), measured);
    EXPECT_NEAR(model.passes_ms, 62.9, 1e-9);
    EXPECT_NEAR(model.step_ms, model.passes_ms + model.optimizer_ms + model.exposed_ms, 1e-6) << precision;
    EXPECT_LT(model.step_ms, 65) << precision;
  }
  EXPECT_EQ(scaling_gpu_of("NVIDIA H200"), "h200");
  EXPECT_EQ(scaling_gpu_of("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(scaling_gpu_of("NVIDIA A100-SXM4-80GB"), "");
}

}  // namespace
}  // namespace fairway::bench
