// Where a model finds a text surprising: the bits of each piece of it, as numbers and as a page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tokenizer/text_changes.h"

namespace fairway::textcode {

struct TextPiece {
  std::string text;  // as written; all pieces side by side are the text
  std::string read;  // as the model reads it
  double bits = 0;   // of its tokens
  bool changed = false;
};
// `bits`: of each token. A character that several tokens spell is one piece, and so is a case operator with what follows it.
std::vector<TextPiece> pieces_of(const Vocabulary& tokenizer, const TextTokens& tokens, std::span<const double> bits);

struct PageFacts {
  std::string title;  // of what model and text
  double bits_per_byte = 0;
  uint64_t bytes = 0, tokens = 0;
  double restoring_bits = 0;
};
// One HTML page without scripts or anything from elsewhere: pieces shaded by their bits, their numbers on hover.
std::string surprisal_page(std::span<const TextPiece> pieces, const PageFacts& facts);
std::string html_escaped(std::string_view text);  // bytes that are no UTF-8 become U+FFFD

}  // namespace fairway::textcode
