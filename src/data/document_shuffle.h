// Documents of a token stream in an order fixed by a seed. Document n gets 64 random bits from (seed, n), and documents are
// sorted by them. Memory is bounded: a first pass counts the words of each range of keys (a bucket), a second writes each
// document to its bucket in one scratch file, and reading holds and sorts one bucket at a time. The order does not depend on
// the number of buckets. The scratch file, as large as the stream, has no name, so nothing of it stays, however the run ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/token_stream.h"

namespace fairway::data {

class DocumentShuffle {
 public:
  // A bucket holds about `bucket_words` 16-bit words, more where the stream would need more than 1024 buckets.
  DocumentShuffle(const TokenStream& stream, const std::filesystem::path& folder, uint64_t seed, uint64_t bucket_words);
  ~DocumentShuffle();
  DocumentShuffle(const DocumentShuffle&) = delete;
  DocumentShuffle& operator=(const DocumentShuffle&) = delete;

  void next(std::span<uint16_t> out);  // the tokens that follow; in all as many as the stream has
  size_t buckets() const { return begins_.size() - 1; }

 private:
  struct Document {
    uint64_t key = 0;
    size_t begin = 0, length = 0;  // of its tokens in `held_`
  };
  uint64_t key_of(uint64_t document) const;
  size_t bucket_of(uint64_t key) const;
  void count(const TokenStream& stream);
  void distribute(const TokenStream& stream);
  void load(size_t bucket);

  std::filesystem::path path_;
  uint64_t seed_;
  int fd_ = -1;
  std::vector<uint64_t> begins_;  // of each bucket in the scratch file, in words; one more for the end
  size_t loaded_ = 0;             // buckets read so far
  std::vector<uint16_t> held_;    // records of one bucket: key (4 words), length (2 words), tokens
  std::vector<Document> order_;   // its documents, sorted
  size_t document_ = 0, at_ = 0;  // next token to hand out: of order_[document_]
};

}  // namespace fairway::data
