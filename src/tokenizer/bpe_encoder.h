// Byte-pair encoding with a SentencePiece model, several times as fast as the library and equal to it id for id. No piece of
// the models it takes has U+2581 but at its front, so no merge crosses into the next word: each word is encoded by itself, and
// the ids of words seen lately are remembered.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/model_file.h"
#include "tokenizer/normalizer.h"

namespace fairway {

class BpeEncoder {
 public:
  // Null for a model that needs the library: without byte fallback, with unused pieces, pieces of several words, longer
  // user-defined symbols, or equal scores, whose order the library leaves to its heap.
  static std::unique_ptr<BpeEncoder> make(const ModelFile& model);
  ~BpeEncoder();

  void encode(std::string_view text, std::vector<int>& ids) const;  // replaces `ids`; safe from many threads

 private:
  struct Scratch;
  explicit BpeEncoder(const ModelFile& model);
  int find(std::string_view piece) const;  // id of a piece that merging may make, or -1
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int>& ids) const;
  void split(std::string_view word, Scratch& scratch) const;
  void offer(std::string_view word, int left, int right, Scratch& scratch) const;

  Normalizer normalizer_;
  std::vector<Piece> pieces_;
  std::vector<int> table_;  // open addressing by hash, -1: free
  size_t longest_ = 0;      // bytes of the longest piece in it
  bool any_frozen_ = false;
  int byte_ids_[256] = {};

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;  // one is borrowed for each text
};

}  // namespace fairway
