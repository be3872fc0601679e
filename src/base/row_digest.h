// 64-bit hash of a row of floats by their bit patterns: four chains that do not wait for one another, pairs of values dealt out
// to them in turn, then one hash of the four. Any change of one value changes it. constexpr, so that a device computes the
// same; there each chain is a thread's.
#pragma once

#include <bit>
#include <cstdint>

namespace fairway::row_digest {

inline constexpr int64_t kChains = 4;
inline constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;

// A bijection of `state` for each word, so that a change is never lost.
constexpr uint64_t absorb(uint64_t state, uint64_t word) {
  state = (state ^ word) * kMultiplier;
  return state ^ (state >> 32);
}

constexpr uint64_t word(float low, float high) {
  return std::bit_cast<uint32_t>(low) | static_cast<uint64_t>(std::bit_cast<uint32_t>(high)) << 32;
}

inline constexpr int64_t kBlock = 2 * kChains;  // a pair for each chain; of what is left over single values in turn

constexpr uint64_t joined(const uint64_t (&chains)[kChains], int64_t count) {
  uint64_t state = absorb(kMultiplier, static_cast<uint64_t>(count));
  for (const uint64_t chain : chains) state = absorb(state, chain);
  return state;
}

// The digest of value(0) … value(count − 1), its chains side by side so that their multiplications overlap.
template <class ValueAt>
constexpr uint64_t of(int64_t count, ValueAt value) {
  uint64_t chains[kChains] = {1, 2, 3, 4};
  int64_t v = 0;
  for (; v + kBlock <= count; v += kBlock)
    for (int64_t i = 0; i < kChains; ++i) chains[i] = absorb(chains[i], word(value(v + 2 * i), value(v + 2 * i + 1)));
  for (; v < count; ++v) chains[v % kChains] = absorb(chains[v % kChains], word(value(v), 0.0f));
  return joined(chains, count);
}

// One of the chains alone.
template <class ValueAt>
constexpr uint64_t chain_of(int64_t chain, int64_t count, ValueAt value) {
  auto state = static_cast<uint64_t>(chain + 1);
  int64_t v = 0;
  for (; v + kBlock <= count; v += kBlock) state = absorb(state, word(value(v + 2 * chain), value(v + 2 * chain + 1)));
  for (v += chain; v < count; v += kChains) state = absorb(state, word(value(v), 0.0f));
  return state;
}

}  // namespace fairway::row_digest
