// From text to tokenizers and shards: what `fairway data …` calls.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fairway::data {

struct TokenizeProgress {
  uint64_t documents = 0, tokens = 0;
};

struct TokenizeOptions {
  std::vector<std::filesystem::path> inputs;        // training text; may be empty when there is validation text
  std::optional<std::filesystem::path> validation;  // becomes fineweb_val_000000.bin
  std::filesystem::path tokenizer, out;
  int shards = 0;  // train shards of equal size; 0: as many of shard_tokens as it takes
  uint64_t shard_tokens = 100'000'000;
  std::optional<uint64_t> shuffle;  // seed of a random order of the training documents; validation text keeps its order
  uint64_t pieces = 0;  // training documents with more tokens are cut into pieces of at most so many, BOS and all; 0: none
  uint64_t hash_run = uint64_t{1} << 22;       // documents' hashes sorted in memory at a time
  uint64_t shuffle_words = uint64_t{1} << 25;  // 16-bit words of documents sorted in memory at a time, about
  int threads = 2;
  bool byte_counts = false;  // also fineweb_val_bytes_*.bin: original bytes of each validation token
  bool case_ops = false;     // transform the text first (spec A.7); implies byte_counts, implied by a tokenizer with operators
  bool apart = false;        // leave out training documents that the validation text has too (document_hashes.h)
  double checkpoint_seconds = 5;  // how often the work so far is made safe; what came after is done again
  std::function<void(const TokenizeProgress&)> progress;  // called now and then; may throw to stop, the work so far is kept
};

struct TokenizeResult {
  uint64_t documents = 0, tokens = 0;
  uint64_t bytes = 0;       // as scoring counts them (after normalisation), train and validation together
  uint64_t text_bytes = 0;  // UTF-8 of the documents as read
  uint64_t changed_documents = 0, changed_bytes = 0;  // what the tokenizer does not keep as written
  uint64_t left_out = 0;                              // training documents that the validation text has too
  int shards = 0;
  double seconds = 0;
  uint64_t resumed_documents = 0;  // taken over from an interrupted run
};

// Writes shards, tokenizer.model and manifest.json into `out`. Interrupted, it goes on where it was when called again with the
// same arguments. InputError for anything wrong with the inputs, naming file and line.
TokenizeResult tokenize(const TokenizeOptions& options);

struct TrainTokenizerOptions {
  std::vector<std::filesystem::path> inputs;
  int vocab = 1024;
  std::filesystem::path out;
  bool case_ops = false;                   // the four operators become pieces of their own, the text is transformed first
  bool lossless = false;                   // no normalisation, so that tokens give the text back byte for byte
  uint64_t max_bytes = uint64_t{1} << 30;  // text used at most, from the front: the trainer holds all of it in memory
};

struct TrainTokenizerResult {
  int vocab = 0;
  uint64_t documents = 0, bytes = 0;
  uint64_t changed_documents = 0, changed_bytes = 0;  // of these by the new tokenizer
  std::string sha256;
};

TrainTokenizerResult train_tokenizer(const TrainTokenizerOptions& options);

}  // namespace fairway::data
