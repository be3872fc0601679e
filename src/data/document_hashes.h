// Which documents a text has, as 64-bit hashes, so that training text and validation text can be kept apart. A hash is of a
// document's tokens behind BOS and not of its text: official shards come without text, the shards of one folder have one
// tokenizer, and equal texts become equal tokens. Documents that `data tokenize` cuts into pieces are hashed whole, in a file
// beside the shards; where there is no such file, the shards themselves are split at BOS.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/manifest.h"

namespace fairway::data {

// Shorter documents are not compared: a title or an error page is in many texts by chance.
inline constexpr uint64_t kLeastDocumentTokens = 16;

// Hashes the documents of a stream that comes in parts. Only those with kLeastDocumentTokens or more are told.
class DocumentHasher {
 public:
  struct Document {
    uint64_t hash = 0;
    uint64_t number = 0, first = 0;  // from 1, and its first token's place in the stream
  };
  using Take = std::function<void(const Document&)>;
  explicit DocumentHasher(Take take) : take_(std::move(take)) {}

  void feed(std::span<const uint16_t> tokens);
  void finish();  // the last document ends here

 private:
  void absorb();

  Take take_;
  Document at_;
  uint64_t state_ = 0, word_ = 0, length_ = 0, place_ = 0;
};

// The sorted hashes in a file: kHashFileMagic, their count, then each as 8 bytes, all little endian.
inline constexpr uint64_t kHashFileMagic = 0x3148534148574146;  // "FAWHASH1"
inline constexpr const char* kHashFileName = "train_documents.hashes";

struct HashFileIdentity {
  uint64_t count = 0;
  std::string sha256;
};
// Calls take() for each, in rising order. InputError for a file that is cut short, too long or not sorted.
HashFileIdentity read_hash_file(const std::filesystem::path& path, const std::function<void(uint64_t)>& take);

struct SharedDocuments {
  uint64_t training = 0, validation = 0;    // documents compared
  uint64_t shared = 0;                      // documents of the validation text that the training text has too …
  uint64_t example = 0, example_token = 0;  // … the first of them by its number from 1 and its first token
  std::string unknown;                      // why nothing was compared; empty: it was
};
// Of the folder's training shards and these validation tokens. Memory is bounded by the validation text. InputError for a file
// of hashes that is broken or not the manifest's.
SharedDocuments find_shared(const std::filesystem::path& folder, std::span<const uint16_t> validation);
// The folder's file of hashes where it is of all its training shards, else nothing.
std::optional<ManifestHashes> usable_hashes(const std::filesystem::path& folder);
std::string sentence_of(const SharedDocuments& shared);

}  // namespace fairway::data
