#include "calibrate/observed_forward.h"

#include <algorithm>

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
  program_ = std::make_unique<BoundProgram>(std::move(tape).finish());
}

void ObservedForward::run(std::span<const int32_t> tokens, std::span<const int32_t> segment_start, HessianStore& hessians) {
  fill(inputs_.tokens, tokens);
  if (inputs_.segment_start) fill(inputs_.segment_start, segment_start);
  executor_->run(*program_, [&](std::string_view point, const Tensor& rows) { hessians.accumulate(point, rows); });
}

}  // namespace fairway
