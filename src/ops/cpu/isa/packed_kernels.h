// Kernels behind packed_rows.h, one table for each instruction set. They run on one thread and never allocate. Every table
// gives the same bits: products are exact in integers, and what follows is written once, in packed.inl.
#pragma once

#include "ops/cpu/packed_rows.h"

namespace fairway::cpu {

struct DigitArgs {
  const float* x = nullptr;
  int64_t cols = 0;
  float factor = 1;    // a power of two; |x·factor| is at most 127·(65536 + 256 + 1)
  int64_t padded = 0;  // digits from cols to here become zero
  int8_t *low = nullptr, *middle = nullptr, *high = nullptr;
  int32_t* sums = nullptr;  // (3) of the digits
};

struct PackedProduct {
  PackedRows w;
  const int8_t* digits[3] = {};
  const int32_t* sums = nullptr;
  double unit = 0;
  TileRange range;
  float* y = nullptr;
};

struct PackedKernels {
  uint32_t (*largest)(const float* x, int64_t cols) = nullptr;  // of the bits of |x|
  void (*digits)(const DigitArgs&) = nullptr;
  void (*multiply)(const PackedProduct&) = nullptr;
};
extern const PackedKernels packed_generic;
extern const PackedKernels packed_avx2, packed_vnni;  // x86-64
extern const PackedKernels packed_neon, packed_dot;   // Arm

// Weights are stored as q + offset, which is not negative.
constexpr int packed_offset(PackedForm form) { return form == PackedForm::nibbles ? 8 : form == PackedForm::six ? 32 : 128; }
constexpr int64_t packed_tile_bytes(PackedForm form) {
  return form == PackedForm::nibbles ? 128 : form == PackedForm::six ? 192 : 256;
}

}  // namespace fairway::cpu
