// Kernels over single heads: L lanes share a head, each with V neighbouring elements at a time. Heads of 64 use 16-byte reads;
// every other size goes through whole warps, element by element.
#pragma once

#include "ops/cuda/columns.h"

namespace fairway::cuda {

// Runs body.operator()<T, V, L>().
template <class Body>
void with_heads(const Tensor& like, bool vectorized, int64_t head_dim, Body&& body) {
  const bool whole = vectorized && head_dim == 64;
  if (like.spec.dtype == DType::bf16) {
    whole ? body.template operator()<bf16, 8, 8>() : body.template operator()<bf16, 1, 32>();
  } else {
    whole ? body.template operator()<float, 4, 16>() : body.template operator()<float, 1, 32>();
  }
}

// A divisor known at launch: most are powers of two, and a shift is a twentieth of a division.
struct Divisor {
  unsigned value;
  int shift;  // −1: not a power of two
  explicit Divisor(int64_t of) : value(static_cast<unsigned>(of)), shift(-1) {
    for (int s = 0; s < 32; ++s)
      if (value == 1u << s) shift = s;
  }
  __device__ unsigned quotient(unsigned x) const { return shift >= 0 ? x >> shift : x / value; }
};

template <int L>
__device__ inline int64_t first_group() {
  return (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / L;
}
template <int L>
__device__ inline int64_t group_stride() {
  return int64_t{gridDim.x} * blockDim.x / L;
}

}  // namespace fairway::cuda
