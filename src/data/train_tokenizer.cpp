// A tokenizer from text files.
#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "data/documents.h"
#include "data/tools.h"
#include "tokenizer/case_ops.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train_bpe.h"

namespace fairway::data {

TrainTokenizerResult train_tokenizer(const TrainTokenizerOptions& options) {
  if (options.inputs.empty()) throw InputError("no text was given to train a tokenizer on");
  std::error_code ignored;
  if (options.out.has_parent_path()) std::filesystem::create_directories(options.out.parent_path(), ignored);
  const WriterLock lock = WriterLock::of_file(options.out);
  TrainTokenizerResult result;
  size_t file = 0;
  std::unique_ptr<DocumentReader> reader;
  Record record;
  const auto next = [&](std::string& sentence) {
    while (result.bytes < options.max_bytes && file < options.inputs.size()) {
      if (!reader) reader = std::make_unique<DocumentReader>(options.inputs[file]);
      if (!reader->next(record)) {
        reader.reset();
        ++file;
        continue;
      }
      reader->decode(record);
      ++result.documents;
      result.bytes += record.text.size();
      sentence = options.case_ops ? encode_case(record.text) : record.text;
      return true;
    }
    return false;
  };
  BpeOptions bpe;
  bpe.vocab = options.vocab;
  if (options.case_ops) bpe.user_symbols.assign(kCaseOps.begin(), kCaseOps.end());
  const Tokenizer tokenizer = Tokenizer::from_bytes(train_bpe(next, bpe), options.out.string());
  write_file_atomic(options.out, tokenizer.bytes());
  result.vocab = tokenizer.vocab();
  result.sha256 = tokenizer.sha256();
  return result;
}

}  // namespace fairway::data
