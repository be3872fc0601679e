#include "model/build_context.h"

#include <cmath>

namespace fairway {

BuildContext::BuildContext(Tape& tape, const Recipe& recipe, const ParamStore& params, const ModelInputs& inputs,
                           ModelStage stage)
    : tape_(&tape), recipe_(&recipe), params_(&params), inputs_(&inputs), stage_(stage) {
  tokens = tape.input("tokens", inputs.tokens);
  if (inputs.targets) targets = tape.input("targets", inputs.targets);
  if (inputs.head_rows) head_rows_ = tape.input("head_rows", inputs.head_rows);
  rope = tape.input("rope", inputs.rope);
  if (inputs.segment_start) {
    segment_start = tape.input("segment_start", inputs.segment_start);
    segment_tiles = tape.one(SegmentTiles{.row_length = inputs.row_length}, {segment_start});  // once for all layers
  }
}

Var BuildContext::param(ParamId id) {
  const ParamBank& bank = params_->bank(id);
  return tape_->param({bank.number}, bank.info.name, bank.value, bank.grad);
}

Var BuildContext::param(ParamId id, int64_t index) {
  const ParamBank& bank = params_->bank(id);
  return tape_->param({bank.number, index}, tensor_name(id, index), bank.value.slice(index),
                      bank.grad ? bank.grad.slice(index) : Tensor{});
}

// The quantizer's own grid (src/quant: grid_setting, sdclip_scales, percentile_scales), less what a row alone cannot know: a
// Hessian's share in the clip, and which percentile below 1 is best where weights reach beyond 1.
FakeQuant BuildContext::grid_of(ParamId bank) const {
  const QuantRecipe& quant = recipe_->quant;
  const bool attention = is_attention(row_of(bank).kind.quant);
  int64_t bits = attention && quant.attn_bits > 0 ? quant.attn_bits : quant.matrix_bits;
  if (recipe_->train.qat.bits > 0) bits = recipe_->train.qat.bits;
  FakeQuant grid{.levels = static_cast<int32_t>((1 << (bits - 1)) - 1), .half_step = true};
  if (quant.scale == ScaleRule::percentile) {
    grid.scale_floor = 1.0 / grid.levels;
  } else {
    grid.deviations = attention ? quant.clip.attn : quant.clip.mlp;
  }
  return grid;
}

Var BuildContext::matrix(ParamId bank, int64_t index) {
  const Var weight = param(bank, index);
  if (!stage_.fake_quant) return weight;
  Var& quantized = quantized_[{bank, index}];  // looped layers quantize once
  if (!quantized) quantized = tape_->one(grid_of(bank), {weight});
  return quantized;
}

void BuildContext::begin_pass(int64_t pass, bool last) {
  adapter_pass_ = pass;
  narrowed_ = last && head_rows_;
}

Var BuildContext::adapter(AdapterSite site, AdapterFactor factor) {
  const ParamBank& bank = inputs_->adapters->params->bank(AdapterId{site, factor});
  const int32_t number = kAdapterBanks + bank.number;
  const bool in_passes = site != AdapterSite::head;
  const auto of_pass = [&](const Tensor& all) {
    const Tensor every = in_passes ? all.slice(adapter_pass_) : all;
    return every.part(0, {inputs_->adapters->documents, every.dim(1), every.dim(2)});
  };
  const ParamSlot slot = in_passes ? ParamSlot{number, adapter_pass_} : ParamSlot{number};
  const std::string name = bank.info.name + (in_passes ? "[" + std::to_string(adapter_pass_) + "]" : "");
  return tape_->param(slot, name, of_pass(bank.value), of_pass(bank.grad));
}

Var BuildContext::adapted(Var base, Var x, Var gain, AdapterSite site) {
  if (!has_adapter(site)) return base;
  return tape_->one(LowRankAdd{.scale = inputs_->adapters->scale},
                    {base, x, adapter(site, AdapterFactor::a), adapter(site, AdapterFactor::b), gain});
}

Var BuildContext::narrow(Var rows) { return narrowed_ && rows ? tape_->one(PickRows{}, {head_rows_, rows}) : rows; }

double BuildContext::layer_scale(int64_t layer) const {
  return model().layer_scale ? 1.0 / std::sqrt(static_cast<double>(layer + 1)) : 1.0;
}

}  // namespace fairway
