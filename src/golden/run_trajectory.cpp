// Forty optimizer steps against stored losses, gradient norms, final weights and their average.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "golden/case_file.h"
#include "train/trainer.h"

namespace fairway::golden {
namespace {

constexpr double kStepLossLimit = 5e-4;  // relative, at every step
constexpr double kWeightLimit = 5e-3;    // Muon amplifies rounding in directions with tiny gradients
constexpr int64_t kMomentumSteps = 20;

// The optimizer of the stored trajectories (golden README): pr1105's, without a schedule.
Recipe trajectory_recipe(const Safetensors& file, int64_t rows, int64_t length, int64_t steps) {
  Recipe recipe = recipe_of(file, "init.");
  recipe.data.seq_len = length;
  recipe.train = {.batch_tokens = rows * length, .micro_batch_tokens = rows * length, .emulated_world = 1, .steps = steps};
  recipe.optim.clip = 0.3;
  recipe.optim.matrix = {
      .lr = 0.025, .wd = 0.04, .momentum = 0.99, .momentum_start = 0.92, .momentum_warmup_steps = kMomentumSteps};
  recipe.optim.token = {.lr = 0.035, .wd = 0.04};
  recipe.optim.scalar = {.lr = 0.025, .wd = 0.04};
  recipe.average = {.use = AverageUse::ema, .ema_decay = 0.997};
  validate(recipe, file.name());
  return recipe;
}

void compare_weights(const Safetensors& file, const std::string& prefix, const ParamStore& params, const Tensor& flat,
                     double& worst, std::string* name) {
  const std::byte* base = params.flat_values().data;
  for (const ParamBank& bank : params.banks()) {
    const Tensor want = file.get(prefix + bank.info.name);
    if (want.spec != bank.value.spec)
      throw InputError(file.name() + ": " + prefix + bank.info.name + " has another shape than the parameter");
    const auto* have = reinterpret_cast<const float*>(flat.data + (bank.value.data - base));
    const double error = relative_error(have, want);
    if (!(error <= worst)) {
      worst = error;
      if (name != nullptr) *name = bank.info.name;
    }
  }
}

}  // namespace

bool is_trajectory(const Safetensors& file) { return file.has("losses"); }

TrajectoryResult run_trajectory(const Safetensors& file, Executor& executor) {
  const Tensor losses = file.get("losses"), norms = file.get("grad_norms"), stream = file.get("stream");
  const auto rows = static_cast<int64_t>(number(file, "B")), length = static_cast<int64_t>(number(file, "T"));
  const int64_t steps = losses.numel(), window = rows * length;
  if (losses.spec.dtype != DType::f64 || norms.spec != losses.spec || stream.spec.dtype != DType::i32 || rows < 1 ||
      length < 1 || rows > (1 << 20) || length > (1 << 20) || stream.numel() < steps * window + 1) {
    throw InputError(file.name() + ": losses, grad_norms and stream do not fit B = " + std::to_string(rows) +
                     ", T = " + std::to_string(length));
  }
  const Recipe recipe = trajectory_recipe(file, rows, length, steps);
  const int32_t* ids = stream.as<int32_t>();
  for (int64_t i = 0; i < stream.numel(); ++i) {
    if (ids[i] < 0 || ids[i] >= recipe.model.vocab)
      throw InputError(file.name() + ": stream holds a token outside of the vocabulary");
  }
  Trainer trainer(recipe, micro_batch_geometry(recipe), executor);
  load_params(file, "init.", trainer.params());
  trainer.begin_averages();
  TrajectoryResult result{.steps = steps};
  for (int64_t step = 0; step < steps; ++step) {
    auto* at = const_cast<int32_t*>(ids + step * window);
    const MicroBatch batch{make_view(at, {{window}, DType::i32}), make_view(at + 1, {{window}, DType::i32}), {}};
    const StepNumbers numbers{.momentum = muon_momentum(recipe.optim.matrix, step), .step = step + 1};
    const StepResult got = trainer.step([&] { return batch; }, numbers, {});
    result.worst_loss = std::max(result.worst_loss, relative_error(got.loss, losses.as<double>()[step]));
    result.worst_grad_norm = std::max(result.worst_grad_norm, relative_error(got.gradient_norm, norms.as<double>()[step]));
  }
  trainer.fetch_state();
  compare_weights(file, "final.", trainer.params(), trainer.params().flat_values(), result.worst_final,
                  &result.worst_final_name);
  compare_weights(file, "ema.", trainer.params(), trainer.averager().ema(), result.worst_ema, nullptr);
  result.held = result.worst_loss <= kStepLossLimit && result.worst_final <= kWeightLimit && result.worst_ema <= kWeightLimit;
  return result;
}

}  // namespace fairway::golden
