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
