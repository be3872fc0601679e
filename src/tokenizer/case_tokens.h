// Tokens of text with case operators (case_ops.h): whether a tokenizer was made for it, and which of its tokens are operators.
#pragma once

#include "tokenizer/case_ops.h"
#include "tokenizer/tokenizer.h"

namespace fairway {

// A tokenizer whose user-defined pieces are the four operators was made for transformed text: this is where a model's use of
// them is declared. Text goes in through encode_text() and comes out through a CaseDecoder.
bool declares_case_ops(const Vocabulary& tokenizer);
std::vector<int> encode_text(const Tokenizer& tokenizer, std::string_view text);

// Which tokens of a text with case operators stand for bytes of it: BOS and operators do not, unless an operator is escaped.
class CaseTokens {
 public:
  explicit CaseTokens(const Vocabulary& tokenizer);                // InputError when an operator is no piece of its own
  std::vector<bool> counted(std::span<const int> document) const;  // `document` begins with BOS

 private:
  std::array<int, 4> ops_{};
};

}  // namespace fairway
