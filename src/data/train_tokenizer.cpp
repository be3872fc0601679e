// A tokenizer from text files.
#include <fmt/core.h>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "data/documents.h"
#include "data/tools.h"
#include "tokenizer/case_ops.h"
#include "tokenizer/text_changes.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_bpe.h"

namespace fairway::data {
namespace {

// The documents of all inputs up to a number of bytes, from the front.
class TextsFrom {
 public:
  TextsFrom(const std::vector<std::filesystem::path>& inputs, uint64_t most) : inputs_(inputs), most_(most) {}

  bool next(std::string& text) {
    while (bytes_ < most_ && file_ < inputs_.size()) {
      if (!reader_) reader_ = std::make_unique<DocumentReader>(inputs_[file_]);
      if (!reader_->next(record_)) {
        reader_.reset();
        ++file_;
        continue;
      }
      reader_->decode(record_);
      ++documents_;
      bytes_ += record_.text.size();
      text = record_.text;
      return true;
    }
    return false;
  }
  uint64_t documents() const { return documents_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::vector<std::filesystem::path>& inputs_;
  uint64_t most_, documents_ = 0, bytes_ = 0;
  size_t file_ = 0;
  std::unique_ptr<DocumentReader> reader_;
  Record record_;
};

void count_changes(const TrainTokenizerOptions& options, const Tokenizer& tokenizer, TrainTokenizerResult& result) {
  if (tokenizer.lossless()) return;
  TextsFrom texts(options.inputs, options.max_bytes);
  const ReadPieces pieces(tokenizer);
  std::vector<int> ids;
  for (std::string text; texts.next(text);) {
    if (options.case_ops) text = encode_case(text);
    tokenizer.encode(text, ids);
    const uint64_t changed = changed_bytes(edits_between(pieces.text(ids), text));
    result.changed_documents += changed > 0 ? 1 : 0;
    result.changed_bytes += changed;
  }
}

}  // namespace

TrainTokenizerResult train_tokenizer(const TrainTokenizerOptions& options) {
  if (options.inputs.empty()) throw InputError("no text was given to train a tokenizer on");
  if (options.out.has_parent_path()) disk::make_folders(options.out.parent_path());  // the lock says what is wrong there
  const WriterLock lock = WriterLock::of_file(options.out);
  TextsFrom texts(options.inputs, options.max_bytes);
  const auto next = [&](std::string& sentence) {
    if (!texts.next(sentence)) return false;
    if (options.case_ops) sentence = encode_case(sentence);
    return true;
  };
  BpeOptions bpe;
  bpe.vocab = options.vocab;
  bpe.lossless = options.lossless;
  if (options.case_ops) bpe.user_symbols.assign(kCaseOps.begin(), kCaseOps.end());
  const Tokenizer tokenizer = Tokenizer::from_bytes(train_bpe(next, bpe), options.out.string());
  write_file_atomic(options.out, tokenizer.bytes());
  TrainTokenizerResult result{
      .vocab = tokenizer.vocab(), .documents = texts.documents(), .bytes = texts.bytes(), .sha256 = tokenizer.sha256()};
  count_changes(options, tokenizer, result);
  return result;
}

}  // namespace fairway::data
