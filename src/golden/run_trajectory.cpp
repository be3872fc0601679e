// Forty optimizer steps against stored losses, gradient norms, final weights and their average.
#include <algorithm>

#include "base/error.h"
#include "golden/case_file.h"
#include "recipe/segments.h"
#include "train/trainer.h"

namespace fairway::golden {
namespace {

std::vector<TensorError> compare_weights(const Safetensors& file, const std::string& prefix, const ParamStore& params,
                                         const Tensor& flat, double limit) {
  std::vector<TensorError> out;
  const std::byte* base = params.flat_values().data;
  for (const ParamBank& bank : params.banks()) {
    const Tensor want = file.get(prefix + bank.info.name);
    if (want.spec != bank.value.spec)
      throw InputError(file.name() + ": " + prefix + bank.info.name + " differs in shape from the parameter");
    const auto* have = reinterpret_cast<const float*>(flat.data + (bank.value.data - base));
    out.push_back({bank.info.name, relative_error(have, want), limit});
  }
  return out;
}

// The stream, read a window a step: inputs and targets shifted by one, segments where documents are packed.
class Stream {
 public:
  Stream(const Safetensors& file, const Recipe& recipe, const Rows& rows)
      : ids_(file.get("stream")),
        rows_(rows),
        rule_{static_cast<int32_t>(recipe.model.bos), recipe.data.max_segment},
        starts_(packs_documents(recipe) ? static_cast<size_t>(rows.tokens()) : 0) {
    for (int64_t i = 0; i < ids_.numel(); ++i) {
      const int32_t id = ids_.as<int32_t>()[i];
      if (id < 0 || id >= recipe.model.vocab)
        throw InputError(file.name() + ": stream holds " + std::to_string(id) + ", outside of the vocabulary");
    }
  }
  MicroBatch at(int64_t step) {
    int32_t* first = ids_.as<int32_t>() + step * rows_.tokens();
    const Spec indices{{rows_.tokens()}, DType::i32};
    MicroBatch batch{make_view(first, indices), make_view(first + 1, indices), {}};
    if (!starts_.empty()) {
      segment_starts({first, starts_.size()}, rows_.length, rule_, starts_);
      batch.segment_start = make_view(starts_.data(), indices);
    }
    return batch;
  }

 private:
  Tensor ids_;
  Rows rows_;
  SegmentRule rule_;
  std::vector<int32_t> starts_;
};

// B, T and as many steps as losses are stored.
Rows rows_of(const Safetensors& file, Metadata& meta) {
  const Tensor losses = file.get("losses"), norms = file.get("grad_norms"), stream = file.get("stream");
  const Rows rows{meta.whole("B", 1, 1 << 20), meta.whole("T", 1, 1 << 20)};
  const int64_t steps = losses.numel();
  if (losses.spec.dtype != DType::f64 || norms.spec != losses.spec || stream.spec.dtype != DType::i32 || steps < 1 ||
      stream.numel() < steps * rows.tokens() + 1 || (meta.has("steps") && meta.whole("steps", 1, 1 << 20) != steps)) {
    throw InputError(file.name() + ": losses, grad_norms and stream do not fit B = " + std::to_string(rows.count) +
                     ", T = " + std::to_string(rows.length) + " and the steps");
  }
  return rows;
}

bool trajectory_held(const TrajectoryResult& r) {
  return r.worst_loss <= r.limits.step_loss && worst_of(r.final_weights).held() && worst_of(r.averages).held();
}

}  // namespace

bool is_trajectory(const Safetensors& file) { return file.has("losses"); }

TrajectoryResult run_trajectory(const Safetensors& file, Executor& executor) {
  Metadata meta(file);
  const Rows rows = rows_of(file, meta);
  Recipe recipe = recipe_of(file, meta, "init.", rows);
  read_optimizer(file, meta, recipe);
  const Tensor losses = file.get("losses"), norms = file.get("grad_norms");
  const int64_t steps = recipe.train.steps = losses.numel();
  const int64_t loop_at = recipe.model.loop.count > 0 ? meta.whole("LOOP_AT_STEP", 0, 1 << 20) : steps;
  meta.refuse_unread();
  validate(recipe, file.name());
  Stream stream(file, recipe, rows);
  Trainer trainer(recipe, {.tokens = rows.tokens(), .row_length = rows.length, .packed = packs_documents(recipe)}, executor);
  load_params(file, "init.", trainer.params());
  trainer.begin_averages();
  TrajectoryResult result{.limits = tolerances_of(executor.backend())};
  for (int64_t step = 0; step < steps; ++step) {
    const StepNumbers numbers{.momentum = muon_momentum(recipe.optim.matrix, step), .step = step + 1};
    const StepResult got = trainer.step([&] { return stream.at(step); }, numbers, {.looped = step >= loop_at});
    result.losses.push_back(relative_error(got.loss, losses.as<double>()[step]));
    result.gradient_norms.push_back(relative_error(got.gradient_norm, norms.as<double>()[step]));
  }
  trainer.fetch_state();
  const ParamStore& params = trainer.params();
  result.worst_loss = *std::max_element(result.losses.begin(), result.losses.end());
  result.worst_grad_norm = *std::max_element(result.gradient_norms.begin(), result.gradient_norms.end());
  result.final_weights = compare_weights(file, "final.", params, params.flat_values(), result.limits.weights);
  result.averages = compare_weights(file, "ema.", params, trainer.averager().ema(), result.limits.average);
  result.held = trajectory_held(result);
  return result;
}

}  // namespace fairway::golden
