// A text continued by a model: what `fairway generate` and fairway_generate() both do, so that they give the same text.
#pragma once

#include "generate/sample.h"
#include "recipe/recipe.h"
#include "tokenizer/tokenizer.h"

namespace fairway {

struct TextRequest {
  std::string prompt;
  int64_t context = 0;  // 0: the training length
  SampleOptions sample;
};

// Gets each token with the text that can be printed now, perhaps none, and at the end kNoToken with what was held back; returns
// false to stop.
using TellText = std::function<bool(int32_t token, const std::string& text)>;
inline constexpr int32_t kNoToken = -1;

// `decoder(length)` gives a decoder of one row. Returns the new tokens.
std::vector<int32_t> write_text(const Tokenizer& tokenizer, const Recipe& recipe,
                                const std::function<Decoder(int64_t)>& decoder, const TextRequest& request,
                                const TellText& tell);

// The window of a text of at most so many tokens.
int64_t text_window(const Recipe& recipe, int64_t context, int64_t tokens);

}  // namespace fairway
