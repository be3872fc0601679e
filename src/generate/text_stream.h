// Tokens to text as they come. A piece's text depends on what stands before it (a space at the beginning is dropped, a letter
// may be spelled in several byte tokens), so a token is decoded together with the one before, and half a letter is held back.
// Where the tokenizer declares case operators they become the capitals that they stand for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/case_tokens.h"

namespace fairway {

class TextStream {
 public:
  // Continues a text that ends in these tokens.
  TextStream(const Tokenizer& tokenizer, std::vector<int> before);

  std::string push(int token);  // what can be printed now
  std::string finish();         // what was held back

 private:
  std::string text_from_context() const;
  std::string ordinary(const std::string& text) { return case_ ? case_->push(text) : text; }
  const Tokenizer* tokenizer_;
  std::vector<int> tokens_;
  std::optional<CaseDecoder> case_;
  size_t context_, told_;  // tokens_[context_, told_) are printed and give the rest its surroundings
};

}  // namespace fairway
