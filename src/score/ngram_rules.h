// What repeated text is looked up by, and when it is believed (scoring spec §2.7): the last 16, 14, … 8 tokens, longest first,
// or one context only (record spec §7.4).
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "recipe/adapt_recipe.h"

namespace fairway {

enum class NgramHash : uint8_t { mixed, published, oldest_first };

// Hash of the last `order` tokens; tokens[0] is the newest. mixed: a polynomial of the tokens' images under a mixer, so that
// the next one follows from this one. published and oldest_first: XOR of small products, about 34 significant bits; the first
// multiplier goes to the newest or to the oldest token.
uint64_t context_hash(NgramHash hash, std::span<const uint16_t> newest_first, int64_t order);
uint64_t pair_hash(NgramHash hash, uint64_t context, uint16_t token, int64_t order);

struct NgramOrder {
  int64_t length;
  double confidence;  // at least, and as many sightings
  uint32_t sightings;

  bool believes(uint32_t best, uint32_t count) const {
    return count >= sightings && static_cast<double>(best) / static_cast<double>(count) >= confidence;
  }
};

struct NgramRules {
  NgramHash hash;
  std::vector<NgramOrder> orders;  // the longest first
  double beta;
  bool by_confidence;  // β grows with it

  float strength(uint32_t best, uint32_t count) const {
    return static_cast<float>(by_confidence ? beta * (static_cast<double>(best) / static_cast<double>(count)) : beta);
  }
};
NgramRules five_orders(const NgramRecipe& recipe, NgramHash hash);
NgramRules ngram_rules(const NgramRecipe& recipe);  // the recipe's own

// The hashes of `order` tokens before each of the targets [first, end) of a stream, into `keys`.
void context_hashes(NgramHash hash, std::span<const uint16_t> stream, int64_t order, int64_t first, std::span<uint64_t> keys);

}  // namespace fairway
