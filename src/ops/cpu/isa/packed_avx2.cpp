// Packed rows with AVX2: products of bytes are added in pairs to 16 bits. That holds 2·63·128 twice, but not 255·128, so whole
// bytes go in as two nibbles. Compiled with flags of its own (see CMakeLists.txt).
#include <immintrin.h>

#include "ops/cpu/isa/packed_kernels.h"

namespace fairway::cpu {
namespace {

__m256i load(const uint8_t* p) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(p)); }

__m256i digit(const int8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm256_set1_epi32(four);
}

// 16-bit sums of the products of four vectors of weights; the digits are 16 columns of one place.
__m256i pair_sums(const __m256i* v, const int8_t* digits) {
  const __m256i first =
      _mm256_add_epi16(_mm256_maddubs_epi16(v[0], digit(digits)), _mm256_maddubs_epi16(v[1], digit(digits + 4)));
  const __m256i second =
      _mm256_add_epi16(_mm256_maddubs_epi16(v[2], digit(digits + 8)), _mm256_maddubs_epi16(v[3], digit(digits + 12)));
  const __m256i ones = _mm256_set1_epi16(1);
  return _mm256_add_epi32(_mm256_madd_epi16(first, ones), _mm256_madd_epi16(second, ones));
}

struct Half {  // eight rows of a tile: four vectors of weights and, of whole bytes, their high nibbles
  __m256i v[4], high[4];
};

template <PackedForm kForm>
Half unpack(const uint8_t* tile) {
  const __m256i nibble = _mm256_set1_epi8(15), top = _mm256_set1_epi8(0x30);
  Half out;
  if constexpr (kForm == PackedForm::bytes) {
    for (int i = 0; i < 4; ++i) {
      const __m256i whole = load(tile + 64 * i);
      out.v[i] = _mm256_and_si256(whole, nibble);
      out.high[i] = _mm256_and_si256(_mm256_srli_epi16(whole, 4), nibble);
    }
    return out;
  }
  const __m256i a = load(tile), b = load(tile + 64);
  out.v[0] = _mm256_and_si256(a, nibble), out.v[1] = _mm256_and_si256(_mm256_srli_epi16(a, 4), nibble);
  out.v[2] = _mm256_and_si256(b, nibble), out.v[3] = _mm256_and_si256(_mm256_srli_epi16(b, 4), nibble);
  if constexpr (kForm == PackedForm::six) {
    const __m256i h = load(tile + 128);
    out.v[0] = _mm256_or_si256(out.v[0], _mm256_and_si256(_mm256_slli_epi16(h, 4), top));
    out.v[1] = _mm256_or_si256(out.v[1], _mm256_and_si256(_mm256_slli_epi16(h, 2), top));
    out.v[2] = _mm256_or_si256(out.v[2], _mm256_and_si256(h, top));
    out.v[3] = _mm256_or_si256(out.v[3], _mm256_and_si256(_mm256_srli_epi16(h, 2), top));
  }
  return out;
}

template <PackedForm kForm>
void sum_tiles(const uint8_t* tiles, int64_t count, const int8_t* const* digits, int32_t (*sums)[16]) {
  __m256i acc[3][2] = {};  // by place and half of the rows
  for (int64_t c = 0; c < count; ++c, tiles += packed_tile_bytes(kForm)) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const Half half = unpack<kForm>(tiles + 32 * h);
#pragma GCC unroll 3
      for (int place = 0; place < 3; ++place) {
        const int8_t* d = digits[place] + c * kTileCols;
        acc[place][h] = _mm256_add_epi32(acc[place][h], pair_sums(half.v, d));
        if constexpr (kForm == PackedForm::bytes)
          acc[place][h] = _mm256_add_epi32(acc[place][h], _mm256_slli_epi32(pair_sums(half.high, d), 4));
      }
    }
  }
  for (int place = 0; place < 3; ++place)
    for (int h = 0; h < 2; ++h) _mm256_store_si256(reinterpret_cast<__m256i*>(sums[place] + 8 * h), acc[place][h]);
}

#include "ops/cpu/isa/packed.inl"

}  // namespace

constinit const PackedKernels packed_avx2{largest_bits, split_digits, multiply_any};

}  // namespace fairway::cpu
