// Matrix products as the ops need them: sizes may be zero, and a gradient passes straight through to a residual.
#pragma once

#include "ops/cpu/gemm.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

// gemm() in the queue's scratch. With k = 0 the product is zero.
void product(Queue& queue, const GemmArgs& args);

// y = x·Wᵀ with x (M, K), W (N, K).
GemmArgs times_transposed(const Tensor& x, const Tensor& weight, const Tensor& y);
// dx = g·W with g (M, N), W (N, K); `weight` may stand in workspace memory.
GemmArgs times_weight(const Tensor& g, const float* weight, const Tensor& dx);
// dW = gᵀ·x with g (M, N), x (M, K); dW (N, K).
GemmArgs weight_gradient(const Tensor& g, const Tensor& x, float* gradient, bool accumulate);

// y = x + scale⊙(the product); either may be absent.
Epilogue residual_epilogue(const Tensor& x, const Tensor& scale, int64_t columns);

// dx = g, or dx += g.
void pass_gradient(Queue& queue, const Tensor& g, const Tensor& dx);

// Everything the gradient of y = scale⊙(in·Wᵀ) needs of W (N, C), given G = gᵀ·in (null when neither gradient is wanted).
struct ScaledWeight {
  Tensor weight, scale;
  const float* product = nullptr;  // G (N, C)
  Tensor dweight, dscale;          // optional
  float* scaled = nullptr;         // diag(scale)·W (N, C), written when not null
};
void scaled_weight_gradients(Queue& queue, const ScaledWeight& args);

}  // namespace fairway::cpu
