#include "model/build_context.h"

#include <cmath>

namespace fairway {

BuildContext::BuildContext(Tape& tape, const Recipe& recipe, const ParamStore& params, const ModelInputs& inputs,
                           ModelStage stage)
    : tape_(&tape), recipe_(&recipe), params_(&params), inputs_(&inputs), stage_(stage) {
  tokens = tape.input("tokens", inputs.tokens);
  targets = tape.input("targets", inputs.targets);
  rope = tape.input("rope", inputs.rope);
  if (inputs.segment_start) segment_start = tape.input("segment_start", inputs.segment_start);
}

Var BuildContext::param(std::string_view name) {
  const ParamBank& bank = params_->bank(name);
  return bank.grad ? tape_->param(name, bank.value, bank.grad) : tape_->input(name, bank.value);
}

Var BuildContext::param(std::string_view name, int64_t index) {
  const ParamBank& bank = params_->bank(name);
  const std::string label = std::string(name) + "[" + std::to_string(index) + "]";
  const Tensor value = bank.value.slice(index);
  return bank.grad ? tape_->param(label, value, bank.grad.slice(index)) : tape_->input(label, value);
}

Var BuildContext::matrix(std::string_view bank, int64_t index) {
  const Var weight = param(bank, index);
  if (!stage_.fake_quant) return weight;
  Var& quantized = quantized_[{std::string(bank), index}];  // looped layers quantize once
  if (!quantized) {
    const auto levels = static_cast<int32_t>((1 << (recipe_->train.qat.bits - 1)) - 1);
    quantized = tape_->one(FakeQuant{.levels = levels, .scale_floor = 1.0 / levels}, {weight});
  }
  return quantized;
}

double BuildContext::layer_scale(int64_t layer) const {
  return model().layer_scale ? 1.0 / std::sqrt(static_cast<double>(layer + 1)) : 1.0;
}

}  // namespace fairway
