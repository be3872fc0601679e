#include "pack/observed_forward.h"

#include <algorithm>

#include "autograd/passes.h"
#include "autograd/tape.h"
#include "base/error.h"

namespace fairway {
namespace {

size_t io_bytes(const Recipe& recipe, const ObservedForward::Form& form) {
  const int64_t numbers = 3 * form.tokens + form.row_length * recipe.model.rope.dims;
  return static_cast<size_t>(numbers) * 4 + 8 * kArenaAlignment;
}

void fill(const Tensor& to, std::span<const int32_t> from) {
  FAIRWAY_ASSERT(to.numel() == static_cast<int64_t>(from.size()), "a calibration batch of another size than the program's");
  std::copy(from.begin(), from.end(), to.as<int32_t>());
}

}  // namespace

ObservedForward::ObservedForward(const Recipe& recipe, const ParamStore& params, const Form& form, ModelStage stage,
                                 Executor& executor)
    : executor_(&executor), io_("calibration inputs", io_bytes(recipe, form)) {
  const Spec indices{{form.tokens}, DType::i32};
  inputs_.tokens = io_.make("tokens", indices);
  inputs_.targets = io_.make("targets", indices);  // stay zero: the loss is not read
  if (form.packed) inputs_.segment_start = io_.make("segment_start", indices);
  inputs_.rope = io_.make("rope", {rope_shape(recipe, form.row_length), DType::f32});
  inputs_.row_length = form.row_length;
  fill_rope(recipe, inputs_.rope);
  Tape tape;
  build_model(tape, recipe, params, inputs_, stage);
  Recording recording = std::move(tape).finish();
  if (executor.on_device())
    sums_ = sum_products(recording.program, [](const std::string& point) { return is_hessian_point(point); });
  session_ = executor.open(std::move(recording));
}

void ObservedForward::run(std::span<const int32_t> tokens, std::span<const int32_t> segment_start, HessianStore& hessians) {
  fill(inputs_.tokens, tokens);
  if (inputs_.segment_start) fill(inputs_.segment_start, segment_start);
  if (!executor_->on_device())
    return session_->run([&](std::string_view point, const Tensor& rows) { hessians.accumulate(point, rows); });
  for (const Tensor& input : {inputs_.tokens, inputs_.segment_start}) executor_->upload(input);
  session_->run();
  summed_ = true;
}

void ObservedForward::give(HessianStore& hessians) {
  if (!summed_) return;
  for (const auto& [point, value] : sums_) {
    const Tensor sum = session_->fetch(value);
    hessians.add_sums(point, sum.cols(), {sum.as<double>(), static_cast<size_t>(sum.numel())});
  }
  session_->clear_state();
  summed_ = false;
}

}  // namespace fairway
