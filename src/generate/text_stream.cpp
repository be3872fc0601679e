#include "generate/text_stream.h"

#include <algorithm>
#include <span>

namespace fairway {
namespace {

constexpr std::string_view kBrokenLetter = "\xEF\xBF\xBD";  // U+FFFD: what bytes that are no letter yet decode to
constexpr size_t kContext = 8;                              // tokens; more than the bytes of a letter
constexpr size_t kMostHeld = 4;                             // tokens; by then it is no letter that is still to be completed

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<int> before)
    : tokenizer_(&tokenizer), tokens_(std::move(before)) {
  told_ = tokens_.size();
  context_ = told_ - std::min(told_, kContext);
  if (declares_case_ops(tokenizer)) case_.emplace().push(tokenizer.decode(tokens_));  // an operator may reach beyond it
}

std::string TextStream::text_from_context() const {
  const std::span<const int> tokens(tokens_);
  const std::string before = tokenizer_->decode(tokens.subspan(context_, told_ - context_));
  const std::string all = tokenizer_->decode(tokens.subspan(context_));
  return all.substr(std::min(before.size(), all.size()));
}

std::string TextStream::push(int token) {
  tokens_.push_back(token);
  std::string text = text_from_context();
  if (text.ends_with(kBrokenLetter) && tokens_.size() - told_ < kMostHeld) return {};
  context_ = told_, told_ = tokens_.size();
  return ordinary(text);
}

std::string TextStream::finish() {
  std::string text = ordinary(text_from_context());
  context_ = told_, told_ = tokens_.size();
  return case_ ? text + case_->finish() : text;
}

}  // namespace fairway
