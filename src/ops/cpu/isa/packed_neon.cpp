// Packed rows for every 64-bit Arm: products of bytes are added to 16 bits, four at most: 4·63·128 fits. Whole bytes go in as
// signed ones, whose products fill 16 bits alone. Rows of four columns lie side by side, so a vector holds four of them.
#include <arm_neon.h>

#include "ops/cpu/isa/packed_kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kGroups = 4;  // of four rows of a tile

#include "ops/cpu/isa/packed_arm.inl"

// Sums by pairs of columns: two for each row.
struct PairSums {
  int32x4_t first, second;  // of two rows each
};

template <PackedForm kForm>
inline void add_products(PairSums& sums, const int8x16_t (&v)[4], const int8x16_t (&d)[4]) {
  if constexpr (kForm == PackedForm::bytes) {
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad) {
      sums.first = vpadalq_s16(sums.first, vmull_s8(vget_low_s8(v[quad]), vget_low_s8(d[quad])));
      sums.second = vpadalq_s16(sums.second, vmull_high_s8(v[quad], d[quad]));
    }
    return;
  }
  int16x8_t first = vmull_s8(vget_low_s8(v[0]), vget_low_s8(d[0])), second = vmull_high_s8(v[0], d[0]);
#pragma GCC unroll 3
  for (int quad = 1; quad < 4; ++quad) {
    first = vmlal_s8(first, vget_low_s8(v[quad]), vget_low_s8(d[quad]));
    second = vmlal_high_s8(second, v[quad], d[quad]);
  }
  sums.first = vpadalq_s16(sums.first, first);
  sums.second = vpadalq_s16(sums.second, second);
}

// Two groups of rows at a time: their sums fit the registers.
template <PackedForm kForm>
void sum_half(const uint8_t* tiles, int64_t count, const int8_t* const* digits, int first, int32_t (*sums)[16]) {
  PairSums acc[3][2] = {};
  for (int64_t c = 0; c < count; ++c, tiles += packed_tile_bytes(kForm)) {
    int8x16_t v[2][4];
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) unpack<kForm>(tiles, first + g, v[g]);
#pragma GCC unroll 3
    for (int place = 0; place < 3; ++place) {
      const int32x4_t all = vreinterpretq_s32_s8(vld1q_s8(digits[place] + c * kTileCols));
      const int8x16_t d[4] = {vreinterpretq_s8_s32(vdupq_laneq_s32(all, 0)), vreinterpretq_s8_s32(vdupq_laneq_s32(all, 1)),
                              vreinterpretq_s8_s32(vdupq_laneq_s32(all, 2)), vreinterpretq_s8_s32(vdupq_laneq_s32(all, 3))};
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g) add_products<kForm>(acc[place][g], v[g], d);
    }
  }
  for (int place = 0; place < 3; ++place)
    for (int g = 0; g < 2; ++g) vst1q_s32(sums[place] + 4 * (first + g), vpaddq_s32(acc[place][g].first, acc[place][g].second));
}

template <PackedForm kForm>
void sum_tiles(const uint8_t* tiles, int64_t count, const int8_t* const* digits, int32_t (*sums)[16]) {
  for (int first = 0; first < kGroups; first += 2) sum_half<kForm>(tiles, count, digits, first, sums);
  if constexpr (kForm == PackedForm::bytes) add_offsets(count, digits, sums);
}

#include "ops/cpu/isa/packed.inl"

}  // namespace

constinit const PackedKernels packed_neon{largest_bits, split_digits, multiply_any};

}  // namespace fairway::cpu
