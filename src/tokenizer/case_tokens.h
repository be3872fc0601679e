// Tokens of text with case operators (case_ops.h): whether a tokenizer was made for it, and the bytes that its tokens stand
// for.
#pragma once

#include "tokenizer/byte_tables.h"
#include "tokenizer/case_ops.h"

namespace fairway {

// A tokenizer whose user-defined pieces are the four operators was made for transformed text: this is where a model's use of
// them is declared. Text goes in through encode_text() and comes out through a CaseDecoder.
bool declares_case_ops(const Tokenizer& tokenizer);
std::vector<int> encode_text(const Tokenizer& tokenizer, std::string_view text);

// Original bytes of each token of one document: as the tables say, but an operator counts nothing unless it is escaped.
class CaseByteCounter {
 public:
  CaseByteCounter(const Tokenizer& tokenizer, const ByteTables& tables);  // InputError when an operator is no piece of its own
  void count(std::span<const int> document, std::vector<uint16_t>& out) const;  // `document` begins with BOS; appends

 private:
  const ByteTables& tables_;
  std::array<int, 4> ops_{};
};

}  // namespace fairway
