#include "tokenizer/train_bpe.h"

#include <fmt/core.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <exception>
#include <unordered_map>

#include "base/error.h"
#include "tokenizer/model_file.h"

namespace fairway {
namespace {

constexpr size_t kMaxSentence = 4096;  // below the library's limit of 4192 bytes, above which it drops the sentence

// Feeds the trainer pieces of at most kMaxSentence bytes; an exception of the source ends the iteration and is kept.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  Sentences(const SentenceSource& next, bool with_blanks) : next_(next), with_blanks_(with_blanks) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }
  const std::exception_ptr& error() const { return error_; }
  int64_t count() const { return count_; }

  void Next() override {
    while (at_ >= text_.size() && fetch()) {}
    if (done_) return;
    size_t length = std::min(kMaxSentence, text_.size() - at_);
    if (at_ + length < text_.size()) {
      const size_t space = text_.find_last_of(" \n\t", at_ + length - 1);
      if (space != std::string::npos && space > at_) length = space - at_;
      while (length > 1 && (static_cast<unsigned char>(text_[at_ + length]) & 0xC0) == 0x80) --length;
    }
    value_.assign(text_, at_, length);
    at_ += length;
    if (!with_blanks_) at_ = std::min(text_.find_first_not_of(" \n\t\r", at_), text_.size());
    ++count_;
  }

 private:
  bool fetch() {
    try {
      done_ = !next_(text_);
    } catch (...) {
      error_ = std::current_exception();
      done_ = true;
    }
    if (done_) return false;
    std::replace(text_.begin(), text_.end(), '\0', ' ');
    at_ = 0;
    if (with_blanks_) return true;
    at_ = std::min(text_.find_first_not_of(" \n\t\r"), text_.size());
    text_.resize(at_ < text_.size() ? text_.find_last_not_of(" \n\t\r") + 1 : at_);
    return true;
  }

  const SentenceSource& next_;
  bool with_blanks_;
  std::string text_, value_;
  size_t at_ = 0;
  int64_t count_ = 0;
  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace

std::string train_bpe(const SentenceSource& next, const BpeOptions& options) {
  constexpr int kSmallest = 4 + 256 + 1, kLargest = 65536;  // specials, bytes, one piece; ids must fit 16 bits
  if (options.vocab < kSmallest || options.vocab > kLargest)
    throw InputError(fmt::format("a vocabulary of {} was asked for; expected {} to {}", options.vocab, kSmallest, kLargest));
  Sentences sentences(next, options.lossless);
  if (sentences.error()) std::rethrow_exception(sentences.error());
  if (sentences.done()) throw InputError("there is no text to train a tokenizer on");
  std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(options.vocab)},
      {"character_coverage", "0.999"},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"normalization_rule_name", options.lossless ? "identity" : "nmt_nfkc"},
      {"remove_extra_whitespaces", options.lossless ? "false" : "true"},
      {"add_dummy_prefix", "false"},
      {"hard_vocab_limit", "false"},
      {"pad_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"unk_id", "3"},
      {"minloglevel", "3"}};
  if (!options.user_symbols.empty()) {
    std::string joined;
    for (const std::string& symbol : options.user_symbols) joined += (joined.empty() ? "" : ",") + symbol;
    settings["user_defined_symbols"] = joined;
  }
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model);
  if (sentences.error()) std::rethrow_exception(sentences.error());
  if (!status.ok())
    throw InputError(fmt::format("a tokenizer of {} pieces cannot be trained on this text ({} sentences): {}", options.vocab,
                                 sentences.count(), status.ToString()));
  return model;
}

}  // namespace fairway
