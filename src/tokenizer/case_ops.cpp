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

// Less than an operator, and all of it may be one's beginning.
bool begins_op(std::string_view text) { return text.size() < kEscapeOp.size() && kEscapeOp.starts_with(text); }

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
  CaseDecoder decoder;
  std::string out = decoder.push(text);
  out += decoder.finish();
  if (!decoder.fault().empty()) throw InputError(decoder.fault());
  return out;
}

std::string CaseDecoder::push(std::string_view piece) {
  held_ += piece;
  const std::string_view all(held_);
  std::string out;
  out.reserve(all.size());
  size_t at = 0;
  while (at < all.size() && !begins_op(all.substr(at))) {
    const size_t before = place_;
    take(all.substr(at), out);
    at += place_ - before;
  }
  held_.erase(0, at);
  return out;
}

std::string CaseDecoder::finish() {
  std::string out;
  while (!held_.empty()) {
    take(held_, out);
    held_.erase(0, 1);  // bytes of no whole operator
  }
  end_without_letter();
  return out;
}

void CaseDecoder::note(const char* what) {
  if (fault_.empty()) fault_ = fmt::format("byte {} of a case-encoded text: {}", place_, what);
}

void CaseDecoder::end_without_letter() {
  if (awaits_ == Awaits::literal) note("an escape without an operator");
  if (awaits_ == Awaits::letter || awaits_ == Awaits::run) note("a case operator without a letter");
  awaits_ = Awaits::nothing;
}

void CaseDecoder::take(std::string_view rest, std::string& out) {
  if (is_op(rest)) {
    const std::string_view op = rest.substr(0, kEscapeOp.size());
    if (awaits_ == Awaits::literal) {
      out += op;
      awaits_ = Awaits::nothing;
    } else {
      end_without_letter();
      awaits_ = op == kEscapeOp ? Awaits::literal : op == kCapsOp ? Awaits::run : Awaits::letter;
    }
    place_ += op.size();
    return;
  }
  const char c = rest.front();
  if (is_letter(c) && awaits_ != Awaits::literal) {
    out += awaits_ == Awaits::nothing ? c : to_upper(c);
    awaits_ = awaits_ == Awaits::run || awaits_ == Awaits::rest_of_run ? Awaits::rest_of_run : Awaits::nothing;
  } else {
    end_without_letter();
    out += c;
  }
  ++place_;
}

}  // namespace fairway
