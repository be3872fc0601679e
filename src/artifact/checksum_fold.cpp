#include "artifact/checksum_fold.h"

#include <immintrin.h>

namespace fairway {
namespace {

__m128i load(const char* bytes) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)); }

// Moves x over the distance that `powers` stands for and adds what lies there.
__m128i fold(__m128i x, __m128i powers, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(x, powers, 0x00), high = _mm_clmulepi64_si128(x, powers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

}  // namespace

uint32_t fold_checksum(uint32_t crc, const char* bytes, size_t count) {
  // x^n modulo the polynomial, bits reversed: over 512 bits, 128 bits, and down to 64; then Barrett's two constants.
  const __m128i by512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  const __m128i by64 = _mm_set_epi64x(0, 0x163cd6124), barrett = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  __m128i x[4];
  for (int i = 0; i < 4; ++i) x[i] = load(bytes + 16 * i);
  x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
  const char* end = bytes + count;
  for (bytes += 64; end - bytes >= 64; bytes += 64)
    for (int i = 0; i < 4; ++i) x[i] = fold(x[i], by512, load(bytes + 16 * i));
  __m128i one = x[0];
  for (int i = 1; i < 4; ++i) one = fold(one, by128, x[i]);
  for (; end - bytes >= 16; bytes += 16) one = fold(one, by128, load(bytes));
  const __m128i low32 = _mm_set_epi32(0, 0, 0, -1);
  one = _mm_xor_si128(_mm_srli_si128(one, 8), _mm_clmulepi64_si128(one, by128, 0x10));
  const __m128i rest = _mm_srli_si128(one, 4);
  one = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(one, low32), by64, 0x00), rest);
  __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(one, low32), barrett, 0x10);
  quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low32), barrett, 0x00);
  return static_cast<uint32_t>(_mm_extract_epi32(_mm_xor_si128(one, quotient), 1));
}

}  // namespace fairway
