// IEEE half precision as bits: row scales and small tensors of an artifact are stored so. Rounds to nearest, ties to even;
// overflow gives infinity, subnormals are kept.
#pragma once

#include <bit>
#include <cstdint>

namespace fairway {

inline uint16_t to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);   // not a number
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520 and above round to infinity
  if (magnitude < 0x38800000) {                                              // below 2⁻¹⁴: units of 2⁻²⁴
    const float units = std::bit_cast<float>(magnitude) * 0x1p24F;
    const auto whole = static_cast<uint32_t>(units);
    const float rest = units - static_cast<float>(whole);
    return static_cast<uint16_t>(sign | (whole + (rest > 0.5F || (rest == 0.5F && whole % 2 == 1) ? 1 : 0)));
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);  // a carry into the exponent is the right result
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

inline float from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  if (magnitude < 0x400) {
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}

}  // namespace fairway
