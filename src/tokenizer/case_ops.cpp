#include "tokenizer/case_ops.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace fairway {
namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char c) { return is_upper(c) || is_lower(c); }
char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }

bool is_op(std::string_view text) {
  return std::any_of(kCaseOps.begin(), kCaseOps.end(), [&](std::string_view op) { return text.starts_with(op); });
}

void encode_run(std::string_view run, std::string& out) {
  const auto capitals = static_cast<size_t>(std::count_if(run.begin(), run.end(), is_upper));
  const bool all = capitals == run.size() && capitals >= 2;
  const bool title = is_upper(run[0]) && !all;
  if (all) out += kCapsOp;
  if (title) out += kTitleOp;
  for (size_t i = 0; i < run.size(); ++i) {
    if (i > 0 && !all && is_upper(run[i])) out += kUpperOp;
    out += to_lower(run[i]);
  }
}

size_t letters_from(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_letter(text[end])) ++end;
  return end - at;
}

}  // namespace

std::string encode_case(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size();) {
    if (const size_t letters = letters_from(text, i); letters > 0) {
      encode_run(text.substr(i, letters), out);
      i += letters;
    } else if (is_op(text.substr(i))) {
      out += kEscapeOp;
      out += text.substr(i, kEscapeOp.size());
      i += kEscapeOp.size();
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string decode_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (!is_op(rest)) {
      out += text[i++];
      continue;
    }
    i += kEscapeOp.size();
    const size_t letters = letters_from(text, i);
    if (rest.starts_with(kEscapeOp)) {
      if (!is_op(text.substr(i)))
        throw InputError(fmt::format("byte {} of a case-encoded text: an escape without an operator", i));
      out += text.substr(i, kEscapeOp.size());
      i += kEscapeOp.size();
      continue;
    }
    if (letters == 0) throw InputError(fmt::format("byte {} of a case-encoded text: a case operator without a letter", i));
    const size_t raised = rest.starts_with(kCapsOp) ? letters : 1;
    for (size_t n = 0; n < raised; ++n) out += to_upper(text[i++]);
  }
  return out;
}

CaseByteCounter::CaseByteCounter(const Tokenizer& tokenizer, const ByteTables& tables) : tables_(tables) {
  for (size_t i = 0; i < kCaseOps.size(); ++i) {
    ops_[i] = tokenizer.find(kCaseOps[i]);
    if (ops_[i] < 0 || tokenizer.piece(ops_[i]).type != PieceType::user_defined)
      throw InputError("the tokenizer has no user-defined pieces U+E001 to U+E004, so it cannot be used with case operators");
  }
}

void CaseByteCounter::count(std::span<const int> document, std::vector<uint16_t>& out) const {
  const int escape = ops_[3];
  bool escaped = false;
  for (size_t i = 0; i < document.size(); ++i) {
    const bool op = std::find(ops_.begin(), ops_.end(), document[i]) != ops_.end();
    const bool counts = i > 0 && (!op || escaped);
    out.push_back(
        counts ? static_cast<uint16_t>(tables_.of(static_cast<uint16_t>(document[i - 1]), static_cast<uint16_t>(document[i])))
               : 0);
    escaped = !escaped && document[i] == escape;
  }
}

}  // namespace fairway
