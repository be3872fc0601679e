#include "score/eval_model.h"

#include <cstring>

#include "autograd/tape.h"
#include "base/error.h"

namespace fairway {

EvalModel::EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor)
    : rows_(rows),
      row_length_(row_length),
      executor_(&executor),
      params_(parameter_table(recipe), ParamStore::Gradients::none),
      io_("inputs", static_cast<size_t>(2 * rows * row_length + row_length * recipe.model.rope.dims + 256) * 4) {
  const Spec indices{{rows * row_length}, DType::i32};
  inputs_.tokens = io_.make("tokens", indices);
  inputs_.targets = io_.make("targets", indices);
  inputs_.rope = io_.make("rope", {rope_shape(recipe, row_length), DType::f32});
  inputs_.row_length = row_length;
  fill_rope(recipe, inputs_.rope);
  Tape tape;
  outputs_ = build_model(tape, recipe, params_, inputs_, stage);
  tape.keep(outputs_.logits);
  program_ = std::make_unique<BoundProgram>(std::move(tape).finish());
}

void load_weights(const ParamStore& params, const Safetensors& file) {
  for (const ParamBank& bank : params.banks()) {
    const Tensor stored = file.get(bank.info.name);
    if (stored.spec != bank.value.spec) {
      throw InputError(file.name() + ": " + bank.info.name + " is " + name_of(stored.spec.dtype) + stored.spec.shape.text() +
                       ", the recipe's model has f32" + bank.value.spec.shape.text());
    }
    std::memcpy(bank.value.data, stored.data, stored.spec.bytes());
  }
}

std::span<const float> EvalModel::nll() const {
  const Tensor nll = program_->tensor(outputs_.nll.id);
  return {nll.as<float>(), static_cast<size_t>(nll.numel())};
}

std::span<const float> EvalModel::logits(int64_t row) const {
  const Tensor logits = program_->tensor(outputs_.logits.id).slice(row);
  return {logits.as<float>(), static_cast<size_t>(logits.numel())};
}

bool stored_looped(const Safetensors& file, const Recipe& recipe) {
  const auto mark = file.metadata().find("looped");
  return recipe.model.loop.count > 0 && (mark == file.metadata().end() || mark->second == "1");
}

}  // namespace fairway
