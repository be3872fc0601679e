#include "score/learning_pass.h"

#include <algorithm>

#include "autograd/passes.h"
#include "autograd/tape.h"

namespace fairway {
namespace {

// Where a slot lies in its store's flat tensors.
FlatRange range_of(const ParamStore& params, const ParamSlot& slot) {
  const ParamBank& bank = params.banks()[static_cast<size_t>(slot.bank)];
  if (slot.slice < 0) return {bank.offset, bank.offset + bank.value.numel()};
  const int64_t size = bank.value.numel() / bank.value.dim(0);
  return {bank.offset + slot.slice * size, bank.offset + (slot.slice + 1) * size};
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
  recording_ = std::move(tape).finish(outputs_.loss, loss_gradient);
  rebind_gradients(recording_, [&](const ParamSlot& slot) {
    const FlatRange range = range_of(params, slot);
    return gradient.part(range.begin, {range.end - range.begin});
  });
  drop_gradients(recording_.program, [&](const ParamSlot& slot) {
    const FlatRange range = range_of(params, slot);
    return std::ranges::none_of(trainable, [&](const FlatRange& r) { return r.begin < range.end && range.begin < r.end; });
  });
}

Session& LearningPass::session_on(Executor& executor) {
  std::unique_ptr<Session>& session = sessions_[&executor];
  if (!session) session = executor.open(recording_, activations_);
  return *session;
}

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
    executor.upload(input);
  session_on(executor).run();
}

void LearningPass::forward(std::span<const LearningSequence> sequences, Executor& executor) {
  fill(sequences);
  scored_ = &session_on(executor);
  for (const BoundCall& call : session_on(executor).calls()) {
    if (call.call->backward) break;
    executor.run_call(call);
  }
}

void LearningPass::backward(double share, Executor& executor) {
  *inputs_.loss_gradient.as<float>() = static_cast<float>(share);
  bool reached = false;  // plain calls among the backward ones belong to them
  for (const BoundCall& call : session_on(executor).calls()) {
    reached |= call.call->backward;
    if (reached) executor.run_call(call);
  }
}

Distribution LearningPass::distribution(int64_t row) const {
  const Tensor logits = scored_->fetched(outputs_.logits.id).slice(row);
  return {{logits.as<float>(), static_cast<size_t>(logits.numel())}, scored_->fetched(outputs_.lse.id).as<float>()[row], {}};
}

double LearningPass::nll(int64_t row) const { return static_cast<double>(scored_->fetched(outputs_.nll.id).as<float>()[row]); }

}  // namespace fairway
