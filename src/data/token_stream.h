// The tokens of a text on their way to shards: one growing file and a journal beside it, so that interrupted work goes on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fairway::data {

struct StreamState {
  uint64_t file = 0, records = 0;  // inputs finished, and records of the next one
  uint64_t documents = 0, tokens = 0, bytes = 0, text_bytes = 0;
  uint64_t hashes = 0;                                // of documents
  uint64_t changed_documents = 0, changed_bytes = 0;  // by the tokenizer
  uint64_t left_out = 0;                              // documents that are not in the stream
};

class TokenStream {
 public:
  enum class Beside : uint8_t { byte_counts, hashes };  // what else is kept: of each token, or of each document
  // `key` tells the inputs, their sizes and the options; a journal with another key is discarded.
  TokenStream(const std::filesystem::path& folder, const std::string& name, std::string key, Beside beside);
  ~TokenStream();
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  const StreamState& state() const { return state_; }
  uint64_t resumed_documents() const { return resumed_; }

  // `bytes` and `hashes` go where the stream keeps them.
  void append(std::span<const uint16_t> tokens, std::span<const uint16_t> bytes, std::span<const uint64_t> hashes);
  void advance(const StreamState& state) { state_ = state; }  // what the appended tokens amount to
  void checkpoint();                                          // syncs and writes the journal
  void remove();                                              // the work is done: files and journal go

  void read(uint64_t position, std::span<uint16_t> out) const;
  void read_bytes(uint64_t position, std::span<uint16_t> out) const;
  void read_hashes(uint64_t position, std::span<uint64_t> out) const;
  void write_hashes(uint64_t position, std::span<const uint64_t> hashes);  // in place of those there

 private:
  std::filesystem::path tokens_path_, beside_path_, journal_path_;
  std::string key_;
  Beside beside_;
  int tokens_fd_ = -1, beside_fd_ = -1;
  StreamState state_;
  uint64_t resumed_ = 0;
};

}  // namespace fairway::data
