#include "score/learning_pass.h"

#include <algorithm>

#include "autograd/tape.h"

namespace fairway {
namespace {

// Sends the program's gradients from the store's place for them to another. What may not learn gets none: its op then leaves
// out the product that would make it.
void redirect_gradients(Program& program, const Tensor& from, const Tensor& to, std::span<const FlatRange> trainable) {
  std::vector<bool> frozen(program.values.size());
  for (size_t id = 0; id < program.values.size(); ++id) {
    Tensor& place = program.values[id].external;
    if (!place || place.data < from.data || place.data >= from.data + from.spec.bytes()) continue;
    const int64_t bytes = place.data - from.data, begin = bytes / static_cast<int64_t>(sizeof(float));
    const auto touches = [&](const FlatRange& r) { return r.begin < begin + place.numel() && begin < r.end; };
    frozen[id] = std::none_of(trainable.begin(), trainable.end(), touches);
    place.data = to.data + bytes;
  }
  for (Call& call : program.calls) {
    for (size_t i = 0; i < call.din.size(); ++i) {
      if (call.din[i] == kNoValue || !frozen[static_cast<size_t>(call.din[i])]) continue;
      call.din[i] = kNoValue;
      call.accumulate[i] = false;
    }
  }
}

}  // namespace

LearningPass::LearningPass(const ScoredModel& model, const ParamStore& params, const Shape& shape, const Tensor& gradient,
                           std::span<const FlatRange> trainable)
    : shape_(shape), bos_(static_cast<int32_t>(model.recipe.model.bos)) {
  const Spec indices{{shape.rows * shape.length}, DType::i32};
  const Spec rope{rope_shape(model.recipe, shape.length), DType::f32};
  io_ = std::make_unique<Arena>("ttt inputs", 3 * align_up(indices.bytes()) + align_up(rope.bytes()) + 1024);
  inputs_.tokens = io_->make("tokens", indices);
  inputs_.targets = io_->make("targets", indices);
  if (shape.documents) inputs_.segment_start = io_->make("segment_start", indices);
  inputs_.rope = io_->make("rope", rope);
  inputs_.loss_gradient = io_->make("loss gradient", {{1}, DType::f32});
  inputs_.row_length = shape.length;
  fill_rope(model.recipe, inputs_.rope);
  Tape tape;
  outputs_ = build_model(tape, model.recipe, params, inputs_, model.stage);
  for (const Var read : {outputs_.logits, outputs_.lse, outputs_.nll})
    if (shape.scored) tape.keep(read);
  const Var loss_gradient = tape.input("loss gradient", inputs_.loss_gradient);
  program_ = std::move(tape).finish(outputs_.loss, loss_gradient);
  redirect_gradients(program_, params.flat_grads(), gradient, trainable);
}

void LearningPass::bind(Arena& activations) { bound_ = std::make_unique<BoundProgram>(std::move(program_), activations); }

void LearningPass::fill(std::span<const LearningSequence> sequences) {
  for (int64_t at = 0, begin = 0; at < shape_.rows * shape_.length; ++at) {
    const LearningSequence& sequence = sequences[static_cast<size_t>(at / shape_.length)];
    const size_t from = static_cast<size_t>(at % shape_.length) % sequence.inputs.size();
    inputs_.tokens.as<int32_t>()[at] = sequence.inputs[from];
    inputs_.targets.as<int32_t>()[at] = sequence.targets[from];
    if (!inputs_.segment_start) continue;
    if (at % shape_.length == 0 || sequence.inputs[from] == bos_) begin = at;
    inputs_.segment_start.as<int32_t>()[at] = static_cast<int32_t>(begin);
  }
}

void LearningPass::run(std::span<const LearningSequence> sequences, double share, Executor& executor) {
  fill(sequences);
  *inputs_.loss_gradient.as<float>() = static_cast<float>(share);
  for (const Tensor& input : {inputs_.tokens, inputs_.targets, inputs_.segment_start, inputs_.loss_gradient})
    executor.to_device(input);
  executor.run(*bound_);
}

void LearningPass::forward(std::span<const LearningSequence> sequences, Executor& executor) {
  fill(sequences);
  for (const BoundCall& call : bound_->calls()) {
    if (call.call->backward) break;
    executor.run_call(call);
  }
}

void LearningPass::backward(double share, Executor& executor) {
  *inputs_.loss_gradient.as<float>() = static_cast<float>(share);
  bool reached = false;  // plain calls among the backward ones belong to them
  for (const BoundCall& call : bound_->calls()) {
    reached |= call.call->backward;
    if (reached) executor.run_call(call);
  }
}

Distribution LearningPass::distribution(int64_t row) const {
  const Tensor logits = bound_->tensor(outputs_.logits.id).slice(row);
  return {{logits.as<float>(), static_cast<size_t>(logits.numel())}, bound_->tensor(outputs_.lse.id).as<float>()[row], {}};
}

double LearningPass::nll(int64_t row) const { return static_cast<double>(bound_->tensor(outputs_.nll.id).as<float>()[row]); }

}  // namespace fairway
