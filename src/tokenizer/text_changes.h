// What a tokenizer does to a text: normalisation replaces characters, joins blanks and drops what is no text. Here is the text
// as the model reads it, and how to come back to the text as it was written, byte for byte.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace fairway {

// At byte `at` of the text as read, `removed` bytes give way to others.
struct TextEdit {
  uint64_t at = 0, removed = 0;
  std::string inserted;
  bool operator==(const TextEdit&) const = default;
};

// The text that tokens stand for: pieces side by side, U+2581 as a space, byte pieces as their bytes; control, unknown and
// unused pieces are nothing. InputError for an id outside the vocabulary.
std::string text_as_read(const Vocabulary& tokenizer, std::span<const int> ids);
std::string piece_as_read(const Piece& piece);

// The same for many texts of one tokenizer, whose ids are its own.
class ReadPieces {
 public:
  explicit ReadPieces(const Vocabulary& tokenizer);
  std::string text(std::span<const int> ids) const;
  size_t bytes(int id) const { return texts_.at(static_cast<size_t>(id)).size(); }

 private:
  std::vector<std::string> texts_;
};

// Edits in order, not touching one another, that make `written` of `read`. The two are walked side by side, so that the edits
// of texts that differ here and there are small; any two texts have some.
std::vector<TextEdit> edits_between(std::string_view read, std::string_view written);
std::string with_edits(std::string_view read, std::span<const TextEdit> edits);  // edits lie inside the text, in order
uint64_t changed_bytes(std::span<const TextEdit> edits);                         // the larger side of each

// Any bytes as tokens and what the tokens do not tell: with_edits(text_as_read(ids), edits) is the text, of tokenizers with
// case operators with its case transformed (case_ops.h). Bytes that are no UTF-8, and NUL, go into the edits alone.
struct TextTokens {
  std::vector<int> ids;
  std::string read;
  std::vector<TextEdit> edits;
};
TextTokens tokenize_text(const Tokenizer& tokenizer, std::string_view text);
std::string text_of(const Vocabulary& tokenizer, std::span<const int> ids, std::span<const TextEdit> edits);

}  // namespace fairway
