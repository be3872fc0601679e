#include "generate/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "recipe/model_shape.h"

namespace fairway {
namespace {

int64_t whole_blocks(int64_t length) { return (length + kCacheKeys - 1) / kCacheKeys; }

size_t small_bytes(const Recipe& recipe, int64_t rows, int64_t length) {
  const auto indices = static_cast<size_t>(rows * (kEmbedWindow + 3) + 1) * 4;
  return indices + static_cast<size_t>((length + 1) * recipe.model.rope.dims) * 4 + 8 * kArenaAlignment;
}

}  // namespace

size_t Decoder::cache_bytes(const Recipe& recipe, int64_t length, ModelStage stage) {
  const size_t passes = layer_order(recipe.model, stage.looped).layers.size();
  return passes * 2 * static_cast<size_t>(whole_blocks(length) * kCacheKeys * recipe.model.kv_dim()) * sizeof(float);
}

Decoder::Decoder(const Recipe& recipe, const ParamStore& params, int64_t rows, int64_t length, ModelStage stage,
                 Executor& executor)
    : rows_(rows),
      length_(length),
      executor_(&executor),
      memory_("decoder", static_cast<size_t>(rows) * cache_bytes(recipe, length, stage) +
                             2 * kArenaAlignment * layer_order(recipe.model, stage.looped).layers.size() +
                             small_bytes(recipe, rows, length)) {
  const ModelRecipe& m = recipe.model;
  const auto indices = [&](const char* name, int64_t count) { return memory_.make(name, {{count}, DType::i32}); };
  decode_.window = indices("window", rows * kEmbedWindow);
  decode_.pick = indices("pick", rows);
  decode_.position = indices("position", 1);
  const int64_t blocks = whole_blocks(length), heads = rows * m.kv_heads;
  for (size_t pass = 0; pass < layer_order(m, stage.looped).layers.size(); ++pass) {
    decode_.keys.push_back(memory_.make("keys", {{heads, blocks, m.head_dim(), kCacheKeys}, DType::f32}));
    decode_.values.push_back(memory_.make("values", {{heads, blocks * kCacheKeys, m.head_dim()}, DType::f32}));
  }
  rope_ = memory_.make("all positions", {rope_shape(recipe, length), DType::f32});
  fill_rope(recipe, rope_);
  inputs_.tokens = indices("tokens", rows);
  inputs_.targets = indices("targets", rows);  // stay zero: the loss is not read
  inputs_.rope = memory_.make("rope", {rope_shape(recipe, 1), DType::f32});
  inputs_.row_length = 1;
  inputs_.decode = &decode_;
  Tape tape;
  outputs_ = build_model(tape, recipe, params, inputs_, stage);
  tape.keep(outputs_.logits);
  program_ = std::make_unique<BoundProgram>(std::move(tape).finish());
}

void Decoder::shift_window(std::span<const int32_t> tokens) {
  const int64_t place = std::min(position_, kEmbedWindow - 1);
  auto *window = decode_.window.as<int32_t>(), *pick = decode_.pick.as<int32_t>();
  for (int64_t row = 0; row < rows_; ++row) {
    int32_t* last = window + row * kEmbedWindow;
    if (position_ >= kEmbedWindow) std::copy(last + 1, last + kEmbedWindow, last);
    last[place] = tokens[static_cast<size_t>(row)];
    pick[row] = static_cast<int32_t>(row * kEmbedWindow + place);
  }
}

void Decoder::step(std::span<const int32_t> tokens) {
  FAIRWAY_ASSERT(position_ < length_, "the decoder is full; restart it");
  FAIRWAY_ASSERT(static_cast<int64_t>(tokens.size()) == rows_, "a step takes one token of each row");
  std::copy(tokens.begin(), tokens.end(), inputs_.tokens.as<int32_t>());
  shift_window(tokens);
  *decode_.position.as<int32_t>() = static_cast<int32_t>(position_);
  if (inputs_.rope.numel() > 0) std::memcpy(inputs_.rope.data, rope_.slice(position_).data, inputs_.rope.spec.bytes());
  for (const Tensor& input : {inputs_.tokens, decode_.window, decode_.pick, decode_.position, inputs_.rope})
    executor_->to_device(input);
  executor_->run(*program_);
  executor_->fetch(*program_, outputs_.logits.id);
  ++position_;
}

std::span<const float> Decoder::logits(int64_t row) const {
  const Tensor logits = program_->tensor(outputs_.logits.id).slice(row);
  return {logits.as<float>(), static_cast<size_t>(logits.numel())};
}

}  // namespace fairway
