#include "bench/step_bench.h"

#include <algorithm>

#include "base/error.h"
#include "base/rng.h"
#include "bench/random_batch.h"
#include "model/initialize.h"
#include "score/eval_model.h"

namespace fairway::bench {
namespace {

constexpr double kTolerance = 1e-9;  // normalised squared error of float32 results, accumulated in another order

// Weights off their starting point: zero projections and unit scales would hide errors.
void perturb(ParamStore& params) {
  Rng rng(11);
  float* values = params.flat_values().as<float>();
  for (int64_t i = 0; i < params.flat_values().numel(); ++i) values[i] += static_cast<float>(0.03 * rng.normal());
}

}  // namespace

Recipe small_recipe(Recipe recipe, int64_t rows, int64_t length) {
  recipe.data.seq_len = length;
  recipe.train.batch_tokens = recipe.train.micro_batch_tokens = rows * length;
  recipe.train.emulated_world = 1;
  return recipe;
}

CompareResult compare_recipe(const Recipe& recipe, ModelStage stage, Executor& truth, Executor& candidate, double tolerance,
                             ThreadPool& pool) {
  if ((stage.looped && recipe.model.loop.count == 0) || (stage.fake_quant && !recipe.train.qat.enabled)) {
    throw InputError("the recipe has no such stage: model.loop.count or train.qat.enabled is off");
  }
  const Geometry geometry = micro_batch_geometry(recipe);
  Trainer trainer(recipe, geometry, candidate);
  trainer.initialize(1, pool);
  perturb(trainer.params());
  RandomBatch batch(recipe, geometry);
  trainer.load(batch.view(), 1);
  return compare(trainer.session(stage).recording(), truth, candidate, tolerance);
}

StepBench bench_step(const Recipe& recipe, ModelStage stage, double seconds, Executor& executor, Executor& truth,
                     ThreadPool& pool, const NextBatch& next) {
  const CompareResult checked = compare_recipe(small_recipe(recipe, 1, 33), stage, truth, executor, kTolerance, pool);
  if (checked.first) {
    throw WorkError("the backend differs from the reference: " + checked.first->op + " of " + checked.first->label +
                    "; nothing was timed");
  }
  const Geometry geometry = micro_batch_geometry(recipe);
  Trainer trainer(recipe, geometry, executor);
  trainer.initialize(1, pool);
  RandomBatch random(recipe, geometry);
  const NextBatch take = next ? next : [&] { return random.view(); };
  StepBench result{.checked = checked.worst};
  result.tokens = static_cast<double>(recipe.train.batch_tokens);
  result.flops = result.tokens * flops_per_token(recipe.model, recipe.data.seq_len, stage.looped);
  int64_t step = 0;
  result.step = measure([&] { trainer.step(take, {.momentum = 0.9, .step = ++step}, stage); }, seconds / 2);
  const MicroBatch batch = take();
  trainer.load(batch, 1);
  const auto passes = [&] {
    trainer.session(stage).run();
    executor.wait();
  };
  result.passes = measure(passes, seconds / 4);
  const int repeats = std::max(2, static_cast<int>(seconds / 4 / result.passes.median));
  result.ops = op_table(executor, trainer.session(stage), repeats);
  const auto weights = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  initialize(*weights, recipe.model, 1, pool);
  EvalModel scored(recipe, geometry.tokens / geometry.row_length, geometry.row_length, stage, executor, weights,
                   {.segments = packs_documents(recipe), .rows = EvalRows::losses});
  std::copy_n(batch.tokens.as<int32_t>(), scored.tokens().size(), scored.tokens().begin());
  std::copy_n(batch.targets.as<int32_t>(), scored.targets().size(), scored.targets().begin());
  if (packs_documents(recipe))
    std::copy_n(batch.segment_start.as<int32_t>(), scored.segment_start().size(), scored.segment_start().begin());
  result.losses = measure([&] { scored.run(); }, seconds / 4);
  return result;
}

}  // namespace fairway::bench
