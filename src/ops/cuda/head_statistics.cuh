// What attention's gradient wants to know of each query and head, in the order in which its kernels copy it.
#pragma once

#include "ops/cuda/context.h"
#include "ops/cuda/heads.cuh"
#include "ops/segment_tiles.h"

namespace fairway::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// Of two neighbouring queries: log2-sum-exp2 of their scores, and along = Σ y·dy.
struct alignas(16) PairStatistics {
  float lse[2], along[2];
};

struct HeadStatistics {
  PairStatistics* of_pairs;  // (B, H, slots/2); null: not wanted
  const float* lse;          // (B, H, T)
  Divisor heads, length;     // H, T
  const int* slot;           // (T) of packed documents: where a row lies among a head's; null: at its place in the sequence
  unsigned slots;            // of a head and sequence
  __device__ void put(unsigned row, unsigned head, float along) const {
    if (of_pairs == nullptr) return;
    const unsigned sequence = length.quotient(row), place = row - sequence * length.value;
    const unsigned block = sequence * heads.value + head, at = slot != nullptr ? static_cast<unsigned>(slot[row]) : place;
    PairStatistics& to = of_pairs[(block * slots + at) / 2];
    to.lse[at % 2] = lse[block * length.value + place] * kLog2E;
    to.along[at % 2] = along;
    if (slot != nullptr && (row + 1 == length.value || static_cast<unsigned>(slot[row + 1]) != at + 1))
      empty_rest(block, at + 1);
  }

 private:
  // Zeros where a tile has no more rows: they leave every product finite.
  __device__ void empty_rest(unsigned block, unsigned at) const {
    for (; at % SegmentTiles::kRows != 0; ++at) {
      PairStatistics& none = of_pairs[(block * slots + at) / 2];
      none.lse[at % 2] = none.along[at % 2] = 0;
    }
  }
};

}  // namespace fairway::cuda
