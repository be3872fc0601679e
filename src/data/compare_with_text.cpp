#include "data/compare_with_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "data/document_encoder.h"
#include "data/documents.h"
#include "data/validation.h"

namespace fairway::data {
namespace {

constexpr uint64_t kNamedCounts = 5;  // byte counts that differ

class Comparison {
 public:
  Comparison(const std::filesystem::path& folder, const Tokenizer& tokenizer, bool case_ops, const std::filesystem::path& text)
      : tokenizer_(tokenizer),
        encoder_(tokenizer, case_ops, held_out_bytes(case_ops)),
        text_(text),
        tokens_(Validation::open(folder)),
        counts_(Validation::open_byte_counts(folder)) {
    if (!counts_ || counts_->total() == tokens_.total()) return;
    problem(fmt::format("{}: the byte counts are of {} tokens, but the validation shards hold {}", folder.string(),
                        counts_->total(), tokens_.total()));
    counts_.reset();
  }

  TextComparison run() {
    DocumentReader reader(text_);
    bool same = true;
    while (same && out_.tokens < tokens_.total() && reader.next(record_)) {
      reader.decode(record_);
      ids_.clear();
      bytes_.clear();
      encoder_.encode(record_.text, ids_, bytes_);
      ++out_.documents;
      same = compare_document();
    }
    if (same && out_.tokens < tokens_.total())
      problem(fmt::format("{}: ends after document {}, but {} goes on with token {}", text_.string(), out_.documents,
                          place(tokens_, out_.tokens), tokens_.locate(out_.tokens).position));
    if (differ_ > kNamedCounts)
      problem(fmt::format("{} more byte counts differ from {}", differ_ - kNamedCounts, text_.string()));
    return std::move(out_);
  }

 private:
  void problem(std::string sentence) { out_.problems.push_back(std::move(sentence)); }
  static std::string place(const ShardSet& set, uint64_t at) { return set[set.locate(at).shard].path().string(); }
  std::string document() const {
    return fmt::format("document {} of {}, line {}", out_.documents, text_.string(), record_.line);
  }

  // The last document may go on behind the last token.
  bool compare_document() {
    const auto count = std::min<uint64_t>(ids_.size(), tokens_.total() - out_.tokens);
    stored_.resize(count);
    tokens_.read_wrapped(tokens_.locate(out_.tokens), stored_);
    for (size_t i = 0; i < count; ++i) {
      if (stored_[i] == ids_[i]) continue;
      const uint64_t at = out_.tokens + i;
      problem(fmt::format("{}: token {} is {}, but {} has {} there; is it another text, or was it made by another tokenizer?",
                          place(tokens_, at), tokens_.locate(at).position, stored_[i], document(), ids_[i]));
      return false;
    }
    if (counts_) compare_counts(count);
    out_.tokens += count;
    return true;
  }

  void compare_counts(uint64_t count) {
    stored_.resize(count);
    counts_->read_wrapped(counts_->locate(out_.tokens), stored_);
    for (size_t i = 0; i < count; ++i) {
      out_.bytes += stored_[i];
      if (stored_[i] == bytes_[i] || ++differ_ > kNamedCounts) continue;
      const uint64_t at = out_.tokens + i;
      problem(fmt::format("{}: token {} (\"{}\", in {}) counts {} bytes; expected {}", place(*counts_, at),
                          counts_->locate(at).position, tokenizer_.piece(ids_[i]).text, document(), stored_[i], bytes_[i]));
    }
    out_.byte_counts += count;
  }

  const Tokenizer& tokenizer_;
  DocumentEncoder encoder_;
  std::filesystem::path text_;
  ShardSet tokens_;
  std::optional<ShardSet> counts_;
  TextComparison out_;
  Record record_;
  std::vector<int> ids_;
  std::vector<uint16_t> bytes_, stored_;
  uint64_t differ_ = 0;
};

}  // namespace

TextComparison compare_with_text(const std::filesystem::path& folder, const Tokenizer& tokenizer, bool case_ops,
                                 const std::filesystem::path& text) {
  return Comparison(folder, tokenizer, case_ops, text).run();
}

}  // namespace fairway::data
