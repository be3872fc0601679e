// DrawTokens in plain C++, as the backends on the CPU run it: one row, and what follows once all rows are drawn.
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/draw_tokens.h"

namespace fairway {

// The first index at which the running sum of the weights exp((z − max)/temperature) passes chance · their total.
template <class T>
int32_t drawn_index(const T* logits, int64_t count, double temperature, double chance, double* weights) {
  const T* likeliest = std::max_element(logits, logits + count);
  const auto fallback = static_cast<int32_t>(likeliest - logits);
  if (temperature <= 0) return fallback;
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    weights[i] = std::exp((static_cast<double>(logits[i]) - static_cast<double>(*likeliest)) / temperature);
    total += weights[i];
  }
  double left = chance * total;
  for (int64_t i = 0; i < count; ++i) {
    if (left < weights[i]) return static_cast<int32_t>(i);
    left -= weights[i];
  }
  return fallback;
}

template <class T>
void draw_row(const DrawTokens& op, const DrawTokens::In& in, int64_t row, double* weights) {
  const int64_t length = in.text.cols(), next = *in.position.as<int32_t>() + 1, vocab = in.logits.cols();
  if (next >= length) return;
  const int32_t token = drawn_index(in.logits.as<T>() + row * vocab, vocab, op.temperature,
                                    in.chances.as<double>()[row * length + next], weights + row * vocab);
  in.text.as<int32_t>()[row * length + next] = in.tokens.as<int32_t>()[row] = token;
  const int64_t width = in.window.numel() / in.tokens.numel(), place = std::min(next, width - 1);
  int32_t* window = in.window.as<int32_t>() + row * width;
  if (next >= width) std::copy(window + 1, window + width, window);
  window[place] = token;
  in.pick.as<int32_t>()[row] = static_cast<int32_t>(row * width + place);
}

template <class T>
void advance_position(const DrawTokens::In& in) {
  const int64_t next = ++*in.position.as<int32_t>(), width = in.angles.numel();
  if (next < in.text.cols()) std::copy_n(in.rope.as<T>() + next * width, width, in.angles.as<T>());
}

}  // namespace fairway
