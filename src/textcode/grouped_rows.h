// Products of packed rows with several vectors at once: a row of tiles is unpacked once, and serves eight vectors while their
// sums stay in registers. AVX-512 VNNI takes bytes (exact_grouped_vnni.cpp), other machines words of 16 bits
// (exact_grouped.inl). Sums of integers are exact, so the bits are those of ops/cpu/packed_rows.h one vector at a time, which
// serves longer rows.
#pragma once

#include <vector>

#include "ops/cpu/packed_rows.h"

namespace fairway::textcode {

inline constexpr int kGroupRows = 8, kPlaces = 3;                    // vectors side by side; digits of an element
inline constexpr int64_t kMostQuadBytes = int64_t{kGroupRows} * 16;  // room for four columns of a group, as any kernel has them

// Digits of one group, as its kernels arranged them, and what else a product needs of each vector.
struct DigitGroup {
  int rows = 0;
  const int8_t* digits = nullptr;
  const int32_t* sums = nullptr;  // (kGroupRows, kPlaces) of the digits
  const double* units = nullptr;  // (kGroupRows)
  float* const* y = nullptr;      // (kGroupRows): where each vector's product goes, all outputs
};

struct GroupedKernels {
  int64_t most_cols = 0;  // of a matrix
  // The three digits of a vector, of whole tiles of columns, to its place among a group's.
  void (*arrange)(const int8_t* const* digits, int64_t cols, int row, int8_t* group) = nullptr;
  // A row of tiles, outliers included, in at most two bytes a weight.
  void (*unpack)(const cpu::PackedRows& w, int64_t tile, uint8_t* weights) = nullptr;
  // The sixteen outputs of that row of tiles for every vector of the group.
  void (*multiply)(const cpu::PackedRows& w, int64_t tile, const uint8_t* weights, const DigitGroup& group) = nullptr;
};
extern const GroupedKernels grouped_generic, grouped_avx2, grouped_avx512, grouped_vnni;

const GroupedKernels& grouped_kernels();  // of the instruction set that ops/cpu works with

// The digits of many vectors in groups. Rows are assigned by any threads, each its own.
class DigitRows {
 public:
  DigitRows(int64_t rows, int64_t most_cols);

  void assign(int64_t row, const float* x, int64_t cols, const float* factor);
  const cpu::DigitVector& row(int64_t m) const { return vectors_[static_cast<size_t>(m)]; }
  // y: (rows, outputs). Of the rows assigned last, of which there are `rows`.
  DigitGroup group(int64_t index, int64_t rows, float** y) const;

 private:
  int64_t stride_;  // bytes of a group's digits
  std::vector<cpu::DigitVector> vectors_;
  std::vector<int8_t> digits_;
  std::vector<int32_t> sums_;
  std::vector<double> units_;
};

}  // namespace fairway::textcode
