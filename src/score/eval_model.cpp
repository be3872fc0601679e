#include "score/eval_model.h"

#include <algorithm>

#include "autograd/tape.h"

namespace fairway {
namespace {

size_t io_bytes(const Recipe& recipe, int64_t tokens, int64_t row_length, const EvalOptions& options) {
  const auto count = [](int64_t n) { return align_up(static_cast<size_t>(n) * 4); };
  return 3 * count(tokens) + 2 * count(options.head_rows) + count(row_length * recipe.model.rope.dims) +
         count(recipe.model.vocab);
}

}  // namespace

EvalModel::EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor)
    : EvalModel(recipe, rows, row_length, stage, executor,
                std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none)) {}

EvalModel::EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor,
                     const std::shared_ptr<ParamStore>& params, const EvalOptions& options)
    : rows_(rows),
      row_length_(row_length),
      executor_(&executor),
      params_(params),
      io_("inputs", io_bytes(recipe, rows * row_length, row_length, options)) {
  const Spec indices{{rows * row_length}, DType::i32};
  const Spec head{{options.head_rows > 0 ? options.head_rows : rows * row_length}, DType::i32};
  inputs_.tokens = io_.make("tokens", indices);
  if (options.segments) inputs_.segment_start = io_.make("segment_start", indices);
  if (options.head_rows > 0) inputs_.head_rows = io_.make("head_rows", head);
  if (!options.raw_head) inputs_.targets = io_.make("targets", head);
  inputs_.rope = io_.make("rope", {rope_shape(recipe, row_length), DType::f32});
  inputs_.row_length = row_length;
  fill_rope(recipe, inputs_.rope);
  if (options.raw_head) {
    inputs_.raw_head = io_.make("ones", {{recipe.model.vocab}, DType::f32});
    std::fill_n(inputs_.raw_head.as<float>(), recipe.model.vocab, 1.0f);
  }
  Tape tape;
  outputs_ = build_model(tape, recipe, *params_, inputs_, stage);
  options.losses_only ? void(outputs_.logits = {}) : tape.keep(outputs_.logits);
  if (outputs_.lse) tape.keep(outputs_.lse);
  session_ = executor.open(std::move(tape).finish());
}

void EvalModel::send_inputs() {
  for (const Tensor& input : {inputs_.tokens, inputs_.targets, inputs_.head_rows, inputs_.segment_start})
    executor_->upload(input);
}

void EvalModel::fetch_results() {
  for (const Var value : {outputs_.nll, outputs_.lse, outputs_.logits})
    if (value) session_->fetch(value.id);
}

void EvalModel::run() {
  send_inputs();
  session_->run();
  fetch_results();
}

void EvalModel::run_losses() {
  send_inputs();
  session_->run();
  session_->fetch(outputs_.nll.id);
}

void EvalModel::run(const Observer& observer) {
  send_inputs();
  session_->run(observer);
  fetch_results();
}

std::span<int32_t> EvalModel::indices(const Tensor& tensor) {
  if (!tensor) return {};
  return {tensor.as<int32_t>(), static_cast<size_t>(tensor.numel())};
}

std::span<const float> EvalModel::values(Var value) const {
  const Tensor tensor = session_->fetched(value.id);
  return {tensor.as<float>(), static_cast<size_t>(tensor.numel())};
}

std::span<const float> EvalModel::nll() const { return values(outputs_.nll); }
std::span<const float> EvalModel::lse() const { return values(outputs_.lse); }

std::span<const float> EvalModel::logits(int64_t row) const {
  const Tensor logits = session_->fetched(outputs_.logits.id).slice(row);
  return {logits.as<float>(), static_cast<size_t>(logits.numel())};
}

}  // namespace fairway
