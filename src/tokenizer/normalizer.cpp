#include "tokenizer/normalizer.h"

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace fairway {
namespace {

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace

Normalizer::Normalizer(NormalizerRules rules, std::vector<std::string> frozen)
    : rules_(std::move(rules)), frozen_(std::move(frozen)) {
  FAIRWAY_ASSERT(rules_.escape_spaces, "a normaliser that leaves spaces as they are");
  for (const std::string& text : frozen_) frozen_lead_[static_cast<unsigned char>(text.at(0))] = true;
  for (size_t byte = 0; byte < 128; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    alone_[byte] = !frozen_lead_[byte];
    for (char next = 0; is_ascii(next) && alone_[byte]; ++next) alone_[byte] = !rules_.map.continues(text + next);
    ascii_[byte] = std::string(prefix(text).normal);
    self_[byte] = alone_[byte] && ascii_[byte] == text && text != " ";
  }
}

Normalizer::Prefix Normalizer::prefix(std::string_view text) const {
  if (frozen_lead_[static_cast<unsigned char>(text[0])])
    for (const std::string& frozen : frozen_)
      if (text.starts_with(frozen)) return {frozen.size(), frozen};
  if (const auto match = rules_.map.longest(text); match.length > 0) return {match.length, match.replacement};
  const size_t size = utf8_character(text);
  return size > 0 ? Prefix{size, text.substr(0, size)} : Prefix{1, "\xEF\xBF\xBD"};
}

void Normalizer::run(std::string_view text, std::string& out) const {
  out.clear();
  while (rules_.collapse_spaces && !text.empty()) {
    const Prefix first = prefix(text);
    if (first.normal != " ") break;
    text.remove_prefix(first.length);
  }
  if (text.empty()) return;
  if (rules_.dummy_prefix) out += kSpaceMark;
  bool after_space = rules_.collapse_spaces;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && self_[static_cast<unsigned char>(text[end])]) ++end;
    if (end > at && end < text.size() && !is_ascii(text[end])) --end;  // the last letter may join a mark that follows it
    if (end > at) {
      out.append(text, at, end - at);
      after_space = false;
      at = end;
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool alone = alone_[byte] && (at + 1 == text.size() || is_ascii(text[at + 1]));
    Prefix next = alone ? Prefix{1, ascii_[byte]} : prefix(text.substr(at));
    while (after_space && next.normal.starts_with(' ')) next.normal.remove_prefix(1);
    for (const char c : next.normal) c == ' ' ? out += kSpaceMark : out += c;
    if (!next.normal.empty()) after_space = rules_.collapse_spaces && next.normal.ends_with(' ');
    at += next.length;
  }
  while (rules_.collapse_spaces && out.ends_with(kSpaceMark)) out.resize(out.size() - kSpaceMark.size());
}

}  // namespace fairway
