// Packed rows for any machine.
#include "ops/cpu/isa/packed_kernels.h"

namespace fairway::cpu {
namespace {

// Weights of four columns, by row.
template <PackedForm kForm>
void unpack(const uint8_t* tile, int quad, uint8_t (&out)[64]) {
  for (int i = 0; i < 64; ++i) {
    if constexpr (kForm == PackedForm::bytes) {
      out[i] = tile[quad * 64 + i];
    } else {
      out[i] = tile[quad / 2 * 64 + i] >> (quad % 2 * 4) & 15;
      if constexpr (kForm == PackedForm::six) out[i] = static_cast<uint8_t>(out[i] | (tile[128 + i] >> (2 * quad) & 3) << 4);
    }
  }
}

template <PackedForm kForm>
void sum_tiles(const uint8_t* tiles, int64_t count, const int8_t* const* digits, int32_t (*sums)[16]) {
  for (int place = 0; place < 3; ++place)
    for (int i = 0; i < 16; ++i) sums[place][i] = 0;
  for (int64_t c = 0; c < count; ++c, tiles += packed_tile_bytes(kForm)) {
    for (int quad = 0; quad < 4; ++quad) {
      uint8_t weights[64];
      unpack<kForm>(tiles, quad, weights);
      for (int place = 0; place < 3; ++place) {
        const int8_t* d = digits[place] + c * kTileCols + 4 * quad;
        for (int i = 0; i < 16; ++i) {
          const uint8_t* w = weights + 4 * i;
          sums[place][i] += w[0] * d[0] + w[1] * d[1] + w[2] * d[2] + w[3] * d[3];
        }
      }
    }
  }
}

#include "ops/cpu/isa/packed.inl"

}  // namespace

constinit const PackedKernels packed_generic{largest_bits, split_digits, multiply_any};

}  // namespace fairway::cpu
