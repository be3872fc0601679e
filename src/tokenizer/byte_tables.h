// Bytes per token (scoring spec §1.2-1.3): bytes(t) = base[x_t] + (lead[x_t] and not bound[x_{t-1}]).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace fairway {

struct ByteTables {
  std::vector<uint16_t> base;  // [V] UTF-8 bytes of the piece without its leading U+2581
  std::vector<uint8_t> lead;   // [V] 1: the piece begins with a space
  std::vector<uint8_t> bound;  // [V] 1: control, unknown, unused or past the tokenizer: no space is counted after it

  int64_t of(uint16_t previous, uint16_t target) const {
    return base[target] + static_cast<int64_t>(lead[target] & static_cast<uint8_t>(bound[previous] ^ 1));
  }
  // Bytes of all targets tokens[1..]; the first token is context only. InputError for a token past the tables.
  int64_t count(std::span<const uint16_t> tokens) const;
};

// Tables of max(tokenizer's vocabulary, `vocab`) entries. InputError when U+2581 is no piece of its own: each space would then
// cost three byte tokens and the score would come out about 20 % too low.
ByteTables make_byte_tables(const Vocabulary& tokenizer, int vocab = 0);

}  // namespace fairway
