#include "generate/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "model/shape/model_shape.h"

namespace fairway {
namespace {

int64_t whole_blocks(int64_t length) { return (length + kCacheKeys - 1) / kCacheKeys; }

size_t small_bytes(const Recipe& recipe, int64_t rows, int64_t length, bool drawing) {
  const auto indices = static_cast<size_t>(rows * (kEmbedWindow + 3) + 1) * 4;
  const size_t drawn = drawing ? static_cast<size_t>(rows * length) * (sizeof(double) + sizeof(int32_t)) : 0;
  return indices + drawn + static_cast<size_t>((length + 1) * recipe.model.rope.dims) * 4 + 10 * kArenaAlignment;
}

}  // namespace

size_t Decoder::cache_bytes(const Recipe& recipe, int64_t length, ModelStage stage) {
  const size_t passes = layer_order(recipe.model, stage.looped).layers.size();
  return passes * 2 * static_cast<size_t>(whole_blocks(length) * kCacheKeys * recipe.model.kv_dim()) * sizeof(float);
}

Decoder::Decoder(const Recipe& recipe, const ParamStore& params, int64_t rows, int64_t length, ModelStage stage,
                 Executor& executor, std::optional<Drawing> drawing)
    : rows_(rows),
      length_(length),
      executor_(&executor),
      memory_("decoder", small_bytes(recipe, rows, length, drawing.has_value())) {
  const ModelRecipe& m = recipe.model;
  const int64_t blocks = whole_blocks(length), heads = rows * m.kv_heads;
  decode_.keys = {{heads, blocks, m.head_dim(), kCacheKeys}, DType::f32};
  decode_.values = {{heads, blocks * kCacheKeys, m.head_dim()}, DType::f32};
  make_inputs(recipe, drawing.has_value());
  Tape tape;
  outputs_ = build_model(tape, recipe, params, inputs_, stage);
  tape.keep(outputs_.logits);
  if (drawing) {
    tape.scope("drawing");
    tape.call(DrawTokens{.temperature = drawing->temperature, .cap = m.softcap},
              {outputs_.logits, tape.input("chances", chances_), tape.input("text", text_),
               tape.input("position", decode_.position), tape.input("window", decode_.window), tape.input("pick", decode_.pick),
               tape.input("tokens", inputs_.tokens), tape.input("all positions", rope_), tape.input("rope", inputs_.rope)});
  }
  session_ = executor.open(std::move(tape).finish());
}

void Decoder::make_inputs(const Recipe& recipe, bool drawing) {
  const auto indices = [&](const char* name, int64_t count) { return memory_.make(name, {{count}, DType::i32}); };
  decode_.window = indices("window", rows_ * kEmbedWindow);
  decode_.pick = indices("pick", rows_);
  decode_.position = indices("position", 1);
  rope_ = memory_.make("all positions", {rope_shape(recipe, length_), DType::f32});
  fill_rope(recipe, rope_);
  inputs_.tokens = indices("tokens", rows_);
  inputs_.targets = indices("targets", rows_);  // stay zero: the loss is not read
  inputs_.rope = memory_.make("rope", {rope_shape(recipe, 1), DType::f32});
  inputs_.row_length = 1;
  inputs_.decode = &decode_;
  if (!drawing) return;
  chances_ = memory_.make("chances", {{rows_, length_}, DType::f64});
  text_ = memory_.make("text", {{rows_, length_}, DType::i32});
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

// Tokens at position_, and what else the program reads that changes with the position.
void Decoder::put_inputs(std::span<const int32_t> tokens) {
  FAIRWAY_ASSERT(position_ < length_, "the decoder is full; restart it");
  FAIRWAY_ASSERT(static_cast<int64_t>(tokens.size()) == rows_, "a step takes one token of each row");
  std::copy(tokens.begin(), tokens.end(), inputs_.tokens.as<int32_t>());
  shift_window(tokens);
  *decode_.position.as<int32_t>() = static_cast<int32_t>(position_);
  if (inputs_.rope.numel() > 0) std::memcpy(inputs_.rope.data, rope_.slice(position_).data, inputs_.rope.spec.bytes());
  for (const Tensor& input : {inputs_.tokens, decode_.window, decode_.pick, decode_.position, inputs_.rope})
    executor_->upload(input);
}

void Decoder::step(std::span<const int32_t> tokens) {
  FAIRWAY_ASSERT(!draws(), "a decoder that draws its tokens takes none");
  put_inputs(tokens);
  session_->run();
  session_->fetch(outputs_.logits.id);
  ++position_;
}

void Decoder::begin_text(std::span<const int32_t> first, std::span<const double> chances) {
  FAIRWAY_ASSERT(draws() && static_cast<int64_t>(chances.size()) == chances_.numel(), "text needs a chance for every token");
  restart();
  std::copy(chances.begin(), chances.end(), chances_.as<double>());
  for (int64_t row = 0; row < rows_; ++row) text_.as<int32_t>()[row * length_] = first[static_cast<size_t>(row)];
  put_inputs(first);
  for (const Tensor& input : {chances_, text_}) executor_->upload(input);
  position_ = 1;
}

void Decoder::draw_next() {
  FAIRWAY_ASSERT(draws() && position_ > 0 && position_ < length_, "text that has not begun, or is full");
  session_->run();
  ++position_;
}

std::span<const int32_t> Decoder::text() {
  executor_->download(text_);
  return {text_.as<int32_t>(), static_cast<size_t>(text_.numel())};
}

std::span<const float> Decoder::logits(int64_t row) const {
  const Tensor logits = session_->fetched(outputs_.logits.id).slice(row);
  return {logits.as<float>(), static_cast<size_t>(logits.numel())};
}

}  // namespace fairway
