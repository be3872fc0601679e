// CaseOps (spec A.7): letters become lower case and four private-use characters say where capitals were. Bijective: over
// maximal runs of ASCII letters, all-lower stays; ALL-CAPS of two letters or more gets U+E002, Capitalized gets U+E001; in a
// mixed run every capital but a first one gets U+E003 before it. A literal operator in the text is preceded by U+E004.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/byte_tables.h"

namespace fairway {

inline constexpr std::string_view kTitleOp = "\xEE\x80\x81", kCapsOp = "\xEE\x80\x82", kUpperOp = "\xEE\x80\x83",
                                  kEscapeOp = "\xEE\x80\x84";
inline constexpr std::array<std::string_view, 4> kCaseOps = {kTitleOp, kCapsOp, kUpperOp, kEscapeOp};

std::string encode_case(std::string_view text);
std::string decode_case(std::string_view text);  // InputError for an operator without its letter

// The same piece by piece, for text as a model makes it: an operator's letters may come later. One whose letter never comes
// leaves nothing behind.
class CaseDecoder {
 public:
  std::string push(std::string_view piece);            // what can be told now
  std::string finish();                                // the bytes that were held back
  const std::string& fault() const { return fault_; }  // the first, with its place; empty: none

 private:
  enum class Awaits : uint8_t { nothing, letter, run, rest_of_run, literal };
  void take(std::string_view rest, std::string& out);  // one operator or byte
  void note(const char* what);
  void end_without_letter();

  Awaits awaits_ = Awaits::nothing;
  std::string held_;  // what an operator may begin with
  size_t place_ = 0;  // bytes taken so far
  std::string fault_;
};

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
