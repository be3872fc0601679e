// bf16 as bits: the upper half of a float, rounded to nearest, ties to even. Not a number stays so.
#pragma once

#include <bit>
#include <cstdint>

namespace fairway {

inline uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline float through_bf16(float value) { return from_bf16(to_bf16(value)); }

}  // namespace fairway
