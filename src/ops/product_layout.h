// How the operands of a matrix product lie, all by rows: C (M, N) = op(A)·op(B).
#pragma once

#include <cstdint>

namespace fairway {

enum class ProductLayout : uint8_t {
  nt,  // A (M, K), B (N, K): y = x·Wᵀ
  nn,  // A (M, K), B (K, N): dx = dy·W
  tn,  // A (K, M), B (K, N): dW = dyᵀ·x
};

}  // namespace fairway
