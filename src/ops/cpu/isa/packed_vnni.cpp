// Packed rows with AVX-512 and VNNI, which adds four products of bytes to a 32-bit sum. Compiled with flags of its own (see
// CMakeLists.txt).
#include <immintrin.h>

#include "ops/cpu/isa/packed_kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kAhead = 1536;  // bytes: the hardware's own prefetching stops at every page

__m512i digit(const int8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm512_set1_epi32(four);
}

// Four vectors of unsigned weights, four columns of sixteen rows each.
template <PackedForm kForm>
void unpack(const uint8_t* tile, __m512i (&v)[4]) {
  if constexpr (kForm == PackedForm::bytes) {
    for (int i = 0; i < 4; ++i) v[i] = _mm512_load_si512(tile + 64 * i);
    return;
  }
  const __m512i nibble = _mm512_set1_epi8(15), a = _mm512_load_si512(tile), b = _mm512_load_si512(tile + 64);
  v[0] = _mm512_and_si512(a, nibble), v[1] = _mm512_and_si512(_mm512_srli_epi16(a, 4), nibble);
  v[2] = _mm512_and_si512(b, nibble), v[3] = _mm512_and_si512(_mm512_srli_epi16(b, 4), nibble);
  if constexpr (kForm == PackedForm::six) {
    constexpr int kOrAnd = 0xF8;  // x | (y & z)
    const __m512i top = _mm512_set1_epi8(0x30), h = _mm512_load_si512(tile + 128);
    v[0] = _mm512_ternarylogic_epi32(v[0], _mm512_slli_epi16(h, 4), top, kOrAnd);
    v[1] = _mm512_ternarylogic_epi32(v[1], _mm512_slli_epi16(h, 2), top, kOrAnd);
    v[2] = _mm512_ternarylogic_epi32(v[2], h, top, kOrAnd);
    v[3] = _mm512_ternarylogic_epi32(v[3], _mm512_srli_epi16(h, 2), top, kOrAnd);
  }
}

template <PackedForm kForm>
void sum_tiles(const uint8_t* tiles, int64_t count, const int8_t* const* digits, int32_t (*sums)[16]) {
  __m512i acc[3][2] = {};  // two chains for each place hide the latency
  for (int64_t c = 0; c < count; ++c, tiles += packed_tile_bytes(kForm)) {
    for (int64_t line = 0; line < packed_tile_bytes(kForm); line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(tiles + kAhead + line), _MM_HINT_T0);
    __m512i v[4];
    unpack<kForm>(tiles, v);
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) {
#pragma GCC unroll 3
      for (int place = 0; place < 3; ++place)
        acc[place][quad & 1] =
            _mm512_dpbusd_epi32(acc[place][quad & 1], v[quad], digit(digits[place] + c * kTileCols + 4 * quad));
    }
  }
  for (int place = 0; place < 3; ++place) _mm512_store_si512(sums[place], _mm512_add_epi32(acc[place][0], acc[place][1]));
}

#include "ops/cpu/isa/packed.inl"

}  // namespace

constinit const PackedKernels packed_vnni{largest_bits, split_digits, multiply_any};

}  // namespace fairway::cpu
