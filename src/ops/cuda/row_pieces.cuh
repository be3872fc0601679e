// Norms of rows, one warp per row. Rows of the width that models have (N pieces of V elements in every lane) stay in registers
// between the two passes; others are read again from cache.
#pragma once

#include "ops/cuda/elements.cuh"

namespace fairway::cuda {

struct NormRow {
  int64_t rows, width;
  float scale, eps;
};

__device__ inline float inverse_rms(float squares, const NormRow& r) {
  return 1.0f / sqrtf(squares / static_cast<float>(r.width) + r.eps);
}

// Calls body(n, c) for the lane's pieces: n counts them where they are kept in registers (N > 0) and is 0 otherwise.
template <int V, int N, class Body>
__device__ void each_piece(int64_t width, Body&& body) {
  if constexpr (N > 0) {
#pragma unroll
    for (int n = 0; n < N; ++n) body(n, lane_id() * V + n * 32 * V);
  } else {
    for (int c = lane_id() * V; c < width; c += 32 * V) body(0, c);
  }
}

template <int V>
__device__ float add_squares(const float (&v)[V], float total) {
#pragma unroll
  for (int k = 0; k < V; ++k) total += v[k] * v[k];
  return total;
}

template <int N>
inline constexpr int kPieces = N > 0 ? N : 1;

// Runs body.operator()<T, V, N>().
template <class Body>
void with_rows(const Tensor& like, bool vectorized, int64_t width, Body&& body) {
  with_type(like, vectorized, [&]<class T, int V>() {
    if constexpr (V > 1) {
      constexpr int kHeld = 512 / (32 * V);
      if (width == 512) return body.template operator()<T, V, kHeld>();
    }
    body.template operator()<T, V, 0>();
  });
}

}  // namespace fairway::cuda
