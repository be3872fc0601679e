// A model small enough for the reference backend: recipe, weights by name, forward passes.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backends/backends.h"
#include "base/rng.h"
#include "model/model.h"
#include "model/named_bank.h"
#include "model/shape/model_shape.h"

namespace fairway::model_test {

// Six layers without any optional feature.
inline Recipe tiny_recipe() {
  Recipe recipe;
  recipe.data.seq_len = 12;
  recipe.model.vocab = 23;
  recipe.model.dim = 16;
  recipe.model.layers = 6;
  recipe.model.heads = 4;
  recipe.model.kv_heads = 2;
  recipe.model.mlp_hidden = 20;
  recipe.model.rope = {.dims = 4, .base = 10000, .reference_length = 1024};
  return recipe;
}

inline std::vector<int32_t> some_tokens(const Recipe& recipe, int64_t count, uint64_t seed = 1) {
  Rng rng(seed);
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<int32_t>(2 + rng.below(static_cast<uint64_t>(recipe.model.vocab - 2))));
  return out;
}

class TinyModel {
 public:
  explicit TinyModel(const Recipe& recipe) : recipe_(recipe), params_(parameter_table(recipe), ParamStore::Gradients::none) {
    for (const ParamBank& bank : params_.banks()) {  // each drawn by its name: models share what they have in common
      Rng rng(std::hash<std::string>{}(bank.info.name));
      for (int64_t i = 0; i < bank.value.numel(); ++i) bank.value.as<float>()[i] = static_cast<float>(0.4 * rng.normal());
    }
  }

  Tensor at(const char* name) { return bank_named(params_, name).value; }
  void set(const char* name, double value) { set(at(name), value); }
  static void set(const Tensor& tensor, double value) {
    for (int64_t i = 0; i < tensor.numel(); ++i) tensor.as<float>()[i] = static_cast<float>(value);
  }
  // A layer whose sublayers add nothing and whose stream passes unchanged.
  void make_neutral(int64_t layer) {
    set(at("block.attn_scale").slice(layer), 0);
    set(at("block.mlp_scale").slice(layer), 0);
    set(at("block.resid_mix").slice(layer).slice(0), 1);
    set(at("block.resid_mix").slice(layer).slice(1), 0);
  }

  Program program(ModelStage stage = {}) { return record(stage, std::vector<int32_t>(12, 2), 12, {}).program; }

  // Negative log-likelihood of each token; the next token is the target, the last one's is 2.
  std::vector<float> nll(std::vector<int32_t> tokens, int64_t row_length, ModelStage stage = {},
                         std::vector<int32_t> starts = {}, const Observer& observer = {}) {
    Queue queue(1);
    const auto executor = make_ref_executor(queue);
    const auto session = executor->open(record(stage, std::move(tokens), row_length, std::move(starts)));
    session->run(observer ? observer : [](std::string_view, const Tensor&) {});
    const Tensor out = session->fetch(outputs_.nll.id);
    return {out.as<float>(), out.as<float>() + out.numel()};
  }

 private:
  Recording record(ModelStage stage, std::vector<int32_t> tokens, int64_t row_length, std::vector<int32_t> starts) {
    tokens_ = std::move(tokens), starts_ = std::move(starts), targets_ = tokens_;
    for (size_t i = 0; i < tokens_.size(); ++i) targets_[i] = i + 1 < tokens_.size() ? tokens_[i + 1] : 2;
    rope_.assign(static_cast<size_t>(row_length * recipe_.model.rope.dims + 1), 0);
    const Spec indices{{static_cast<int64_t>(tokens_.size())}, DType::i32};
    ModelInputs inputs{
        .tokens = make_view(tokens_.data(), indices), .targets = make_view(targets_.data(), indices), .row_length = row_length};
    if (!starts_.empty()) inputs.segment_start = make_view(starts_.data(), indices);
    inputs.rope = make_view(rope_.data(), {rope_shape(recipe_, row_length), DType::f32});
    fill_rope(recipe_, inputs.rope);
    Tape tape;
    outputs_ = build_model(tape, recipe_, params_, inputs, stage);
    return std::move(tape).finish();
  }

  Recipe recipe_;
  ParamStore params_;
  std::vector<int32_t> tokens_, targets_, starts_;
  std::vector<float> rope_;
  ModelOutputs outputs_;
};

}  // namespace fairway::model_test
