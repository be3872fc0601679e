#include "base/rng.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace fairway {

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplyA = 0xD2511F53, kMultiplyB = 0xCD9E8D57;
  constexpr uint32_t kWeylA = 0x9E3779B9, kWeylB = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kMultiplyA * counter[0], b = kMultiplyB * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kWeylA;
    key[1] += kWeylB;
  }
  return counter;
}

uint64_t Rng::next_u64() {
  const uint64_t block = state_.drawn / 2;
  if (block != block_) {
    const auto words = philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                   static_cast<uint32_t>(state_.stream), static_cast<uint32_t>(state_.stream >> 32)},
                                  {static_cast<uint32_t>(state_.seed), static_cast<uint32_t>(state_.seed >> 32)});
    words_ = {words[0] | static_cast<uint64_t>(words[1]) << 32, words[2] | static_cast<uint64_t>(words[3]) << 32};
    block_ = block;
  }
  return words_[state_.drawn++ & 1];
}

double Rng::uniform01() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

uint64_t Rng::below(uint64_t bound) {
  FAIRWAY_ASSERT(bound > 0, "a random number below zero was asked for");
  // Multiply and keep the high half; the few low products that would favour some results are drawn again.
  const uint64_t reject_below = (0 - bound) % bound;
  for (;;) {
    const auto product = static_cast<unsigned __int128>(next_u64()) * bound;
    if (static_cast<uint64_t>(product) >= reject_below) return static_cast<uint64_t>(product >> 64);
  }
}

double Rng::normal() {
  if (state_.has_spare != 0) {
    state_.has_spare = 0;
    return std::bit_cast<double>(state_.spare_bits);
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform01()));  // 1 - u is never zero
  const double angle = 2.0 * std::numbers::pi * uniform01();
  state_.spare_bits = std::bit_cast<uint64_t>(radius * std::sin(angle));
  state_.has_spare = 1;
  return radius * std::cos(angle);
}

void Rng::restore(const RngState& state) {
  state_ = state;
  block_ = ~0ULL;
}

}  // namespace fairway
