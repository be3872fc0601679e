#include "pack/online.h"

#include "pack/hessian_file.h"

namespace fairway {
namespace {

std::span<const int32_t> indices(const Tensor& tensor) {
  if (!tensor) return {};
  return {tensor.as<int32_t>(), static_cast<size_t>(tensor.numel())};
}

}  // namespace

OnlineCalibration::OnlineCalibration(const Recipe& recipe, const ParamStore& params, data::Loader& loader, Executor& executor,
                                     const OnlineOptions& options)
    : recipe_(&recipe), loader_(&loader), options_(options), hessians_(executor) {
  const data::Batch& first = loader.next();  // only its form is looked at
  const ObservedForward::Form form{first.tokens.numel(), first.tokens.cols(), first.segment_start.present};
  for (bool looped : {false, true}) {
    if (looped && recipe.model.loop.count == 0) continue;
    forward_.try_emplace(looped, recipe, params, form, ModelStage{.looped = looped}, executor);
  }
}

void OnlineCalibration::after_step(int64_t step, double learning_rate_scale, bool looped) {
  if (step <= seen_step_ || step % options_.every != 0 || !(learning_rate_scale < options_.lr_mul_below)) return;
  const data::Batch& batch = loader_->next();
  hessians_.forget(options_.keep);
  forward_.at(looped).run(indices(batch.tokens), indices(batch.segment_start), hessians_);
  forward_.at(looped).give(hessians_);
  hessians_.end_batch();
  seen_step_ = step;
  ++passes_;
  changed_ = true;
}

void OnlineCalibration::save(const std::filesystem::path& path, int64_t step) {
  if (!changed_) return;
  save_hessians(path, hessians_, {step, passes_, recipe_hash(*recipe_)});
  changed_ = false;
}

void OnlineCalibration::load(const std::filesystem::path& path) {
  const HessianState state = load_hessians(path, *recipe_, hessians_);
  for (; passes_ < state.passes; ++passes_) loader_->next();  // go on with the batch after the last one seen
  seen_step_ = state.step;
}

}  // namespace fairway
