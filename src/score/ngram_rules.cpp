#include "score/ngram_rules.h"

#include <array>

namespace fairway {
namespace {

constexpr std::array<uint64_t, 32> kMultipliers{36313,   27191,   51647,   81929,   131071,  196613,  262147,  393241,
                                                524309,  655373,  786433,  917521,  1048583, 1179653, 1310729, 1441801,
                                                1572869, 1703941, 1835017, 1966087, 2097169, 2228243, 2359319, 2490389,
                                                2621471, 2752549, 2883617, 3014687, 3145757, 3276833, 3407903, 3538973};
constexpr uint64_t kPairMultiplier = 1000003, kBase = 0x9E3779B97F4A7C15;

uint64_t mix(uint64_t state, uint64_t word) {
  state = (state ^ (word + 0x9E3779B97F4A7C15U)) * 0xD6E8FEB86659FD93U;
  return std::rotl(state, 29) ^ (state >> 32);
}

uint64_t image(uint16_t token) { return mix(mix(token, 1), 2); }

// Σ image(newest − k)·B^k, mixed once more so that every bit of the key depends on every token.
uint64_t finished(uint64_t sum, int64_t order) { return mix(mix(sum, static_cast<uint64_t>(order)), 3); }

}  // namespace

uint64_t context_hash(NgramHash hash, std::span<const uint16_t> newest_first, int64_t order) {
  uint64_t state = 0, power = 1;
  for (int64_t k = 0; k < order; ++k) {
    const uint16_t token = newest_first[static_cast<size_t>(k)];
    const int64_t place = hash == NgramHash::oldest_first ? order - 1 - k : k;
    if (hash == NgramHash::mixed) {
      state += image(token) * power;
      power *= kBase;
    } else {
      state ^= token * kMultipliers[static_cast<size_t>(place)];
    }
  }
  return hash == NgramHash::mixed ? finished(state, order) : state;
}

uint64_t pair_hash(NgramHash hash, uint64_t context, uint16_t token, int64_t order) {
  if (hash == NgramHash::mixed) return mix(context, uint64_t{token} | uint64_t{1} << 32);
  return context * kPairMultiplier ^ token * kMultipliers[static_cast<size_t>(order)];
}

NgramRules five_orders(const NgramRecipe& recipe, NgramHash hash) {
  NgramRules rules{.hash = hash, .orders = {}, .beta = recipe.beta, .by_confidence = true};
  const auto add = [&](int64_t length, double confidence, uint32_t sightings) {
    rules.orders.push_back({length, confidence * recipe.threshold_scale, sightings});
  };
  add(16, 0.50, 2);
  add(14, 0.50, 2);
  add(12, 0.60, 2);
  add(10, 0.70, 3);
  add(8, 0.70, 3);
  return rules;
}

NgramRules ngram_rules(const NgramRecipe& recipe) {
  if (recipe.order == 0) return five_orders(recipe, NgramHash::mixed);
  return {NgramHash::oldest_first, {{recipe.order, recipe.threshold, 1}}, recipe.beta, false};
}

void context_hashes(NgramHash hash, std::span<const uint16_t> stream, int64_t order, int64_t first, std::span<uint64_t> keys) {
  const auto* before = stream.data() + first - order;  // the oldest token of the first context
  const auto length = static_cast<size_t>(order);
  if (hash != NgramHash::mixed) {
    for (size_t i = 0; i < keys.size(); ++i) {
      uint64_t key = 0;
      for (size_t k = 0; k < length; ++k)
        key ^= before[i + k] * kMultipliers[hash == NgramHash::oldest_first ? k : length - 1 - k];
      keys[i] = key;
    }
    return;
  }
  uint64_t sum = 0, past = 1;  // B^order
  for (size_t k = 0; k < length; ++k) {
    sum = sum * kBase + image(before[k]);
    past *= kBase;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = finished(sum, order);
    sum = sum * kBase + image(before[i + length]) - image(before[i]) * past;  // the target comes in, the oldest goes
  }
}

}  // namespace fairway
