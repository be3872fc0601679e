// What attention's gradient wants to know of each query and head, in the order in which its kernels copy it.
#pragma once

#include "ops/cuda/context.h"
#include "ops/cuda/heads.cuh"

namespace fairway::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;

// Of two neighbouring queries: log2-sum-exp2 of their scores, and along = Σ y·dy.
struct alignas(16) PairStatistics {
  float lse[2], along[2];
};

struct HeadStatistics {
  PairStatistics* of_pairs;  // (B, H, T/2); null: not wanted
  const float* lse;          // (B, H, T)
  Divisor heads, length;     // H, T
  __device__ void put(unsigned row, unsigned head, float along) const {
    if (of_pairs == nullptr) return;
    const unsigned sequence = length.quotient(row), place = row - sequence * length.value;
    const unsigned at = (sequence * heads.value + head) * length.value + place;
    PairStatistics& to = of_pairs[at / 2];
    to.lse[at % 2] = lse[at] * kLog2E;
    to.along[at % 2] = along;
  }
};

}  // namespace fairway::cuda
