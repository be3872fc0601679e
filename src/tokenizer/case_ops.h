// CaseOps (spec A.7): letters become lower case and four private-use characters say where capitals were. Bijective: over
// maximal runs of ASCII letters, all-lower stays; ALL-CAPS of two letters or more gets U+E002, Capitalized gets U+E001; in a
// mixed run every capital but a first one gets U+E003 before it. A literal operator in the text is preceded by U+E004.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace fairway
