// Packed rows for Arm with dot products of bytes (ARMv8.2): four products are added to a 32-bit sum, which is a row's own.
// Compiled with flags of its own (see CMakeLists.txt).
#include <arm_neon.h>

#include "ops/cpu/isa/packed_kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kGroups = 4;  // of four rows of a tile

#include "ops/cpu/isa/packed_arm.inl"

template <PackedForm kForm>
void sum_tiles(const uint8_t* tiles, int64_t count, const int8_t* const* digits, int32_t (*sums)[16]) {
  int32x4_t acc[3][kGroups] = {};
  for (int64_t c = 0; c < count; ++c, tiles += packed_tile_bytes(kForm)) {
    const int8x16_t d[3] = {vld1q_s8(digits[0] + c * kTileCols), vld1q_s8(digits[1] + c * kTileCols),
                            vld1q_s8(digits[2] + c * kTileCols)};
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      int8x16_t v[4];
      unpack<kForm>(tiles, g, v);
#pragma GCC unroll 3
      for (int place = 0; place < 3; ++place) {
        int32x4_t& sum = acc[place][g];
        sum = vdotq_laneq_s32(sum, v[0], d[place], 0), sum = vdotq_laneq_s32(sum, v[1], d[place], 1);
        sum = vdotq_laneq_s32(sum, v[2], d[place], 2), sum = vdotq_laneq_s32(sum, v[3], d[place], 3);
      }
    }
  }
  for (int place = 0; place < 3; ++place)
    for (int g = 0; g < kGroups; ++g) vst1q_s32(sums[place] + 4 * g, acc[place][g]);
  if constexpr (kForm == PackedForm::bytes) add_offsets(count, digits, sums);
}

#include "ops/cpu/isa/packed.inl"

}  // namespace

constinit const PackedKernels packed_dot{largest_bits, split_digits, multiply_any};

}  // namespace fairway::cpu
