// Products with the MLP's activation in their epilogue, for bf16 on Hopper. Where CUTLASS is absent from the build or a shape
// does not suit, they do nothing and say so; mlp.cu then takes a product and an elementwise pass.
#pragma once

#include "ops/cuda/context.h"

namespace fairway::cuda {

// pre = m·upᵀ (rounded to bf16), post = (pre > 0 ? pre : pre/2)².
bool fused_up(Scratch& scratch, const Tensor& m, const Tensor& up, const Tensor& pre, const Tensor& post);

// dpre = (g·down)⊙slope(pre), slope = pre > 0 ? 2·pre : pre/2.
bool fused_down_gradient(Scratch& scratch, const Tensor& g, const Tensor& down, const Tensor& pre, const Tensor& dpre);

}  // namespace fairway::cuda
