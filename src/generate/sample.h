// Text from a model: one token at a time, drawn from softmax(logits/temperature). When the window is full the model
// goes on from the last half of it.
#pragma once

#include <functional>
#include <vector>

#include "base/rng.h"
#include "generate/decoder.h"

namespace fairway {

struct SampleOptions {
  int64_t tokens = 128;
  double temperature = 0.8;  // 0: always the likeliest
  int64_t top_k = 0;         // 0: all
  double top_p = 1;          // draw from the fewest likeliest tokens that have this share together; 1: all
  int64_t vocab = 0;         // only from the first so many tokens; 0: all
  uint64_t seed = 1;
  int32_t stop = -1;  // a token that ends the text
};

// `model` has one row. Continues `text` (which is not empty); calls `each` for every new token as it is made, and ends when it
// returns false.
std::vector<int32_t> sample(Decoder& model, std::vector<int32_t> text, const SampleOptions& options,
                            const std::function<bool(int32_t)>& each = {});

// Index drawn from the distribution; `scratch` saves the allocation where many are drawn.
int32_t draw(std::span<const float> logits, const SampleOptions& options, Rng& rng);
int32_t draw(std::span<const float> logits, const SampleOptions& options, Rng& rng, std::vector<double>& scratch);

}  // namespace fairway
