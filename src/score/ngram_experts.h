// Who proposes a token from repeated text (scoring spec §2.7). The token expert looks up the last 16, 14, … 8 tokens, longest
// first, or one context only (record spec §7.4), and is what ships. The word experts of PR #1105 decide by the class of the
// target itself which of them may speak: they are here to be caught by the audit.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "recipe/score_recipe.h"
#include "score/distribution.h"
#include "score/ngram_table.h"
#include "tokenizer/byte_tables.h"

namespace fairway {

enum class NgramHash : uint8_t { mixed, published, oldest_first };

// Hash of the last `order` tokens; tokens[0] is the newest. published and oldest_first: XOR of small products, about 34
// significant bits; the first multiplier goes to the newest or to the oldest token.
uint64_t context_hash(NgramHash hash, std::span<const uint16_t> newest_first, int64_t order);
uint64_t pair_hash(NgramHash hash, uint64_t context, uint16_t token, int64_t order);

class TokenExpert {
 public:
  enum class Orders : uint8_t { five, one };  // five: 8 to 16 tokens; one: the recipe's
  TokenExpert(const NgramRecipe& recipe, Orders orders, NgramHash hash);
  void clear();
  Tilt hint() const;  // for the token after those absorbed
  void absorb(const ScoredTokens& tokens);

 private:
  struct Order {
    int64_t length;
    double confidence;  // at least, and as many sightings
    uint32_t sightings;
    NgramTable table;
  };
  void push(uint16_t token);
  void remember(uint16_t token);

  NgramRecipe recipe_;
  bool one_;
  NgramHash hash_;
  std::vector<Order> orders_;     // the shortest first
  std::vector<uint16_t> recent_;  // newest first, as many as the longest order looks at
  bool begun_ = false;
};

// Within-word and word-start experts with the agreement bonus.
class PublishedExperts {
 public:
  PublishedExperts(const NgramRecipe& recipe, const ByteTables& classes);
  void clear();
  Tilt hint_seeing_target(uint16_t target) const;
  void absorb(const ScoredTokens& tokens);

 private:
  bool starts_word(uint16_t token, uint16_t previous) const;
  uint64_t within_key() const;
  uint64_t start_key() const;
  void absorb_word(uint16_t token);

  const ByteTables* classes_;
  TokenExpert tokens_;
  std::vector<NgramTable> within_;  // by the length so far: 1, 2, 3 or more
  NgramTable start_;
  std::deque<uint64_t> words_;  // hashes of the last four words
  uint64_t word_ = 0;
  int64_t word_tokens_ = 0;
  uint16_t previous_ = 0;
};

}  // namespace fairway
