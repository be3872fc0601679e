// The output projection that attention and MLP share.
#pragma once

#include "ops/cuda/gemm.h"
#include "ops/cuda/small.h"

namespace fairway::cuda {

Tensor scaled_weight(Scratch& scratch, const Tensor& weight, const Tensor& scale);  // diag(scale)·W in scratch

// y = x + h·scaledᵀ; x may be absent.
void project_into(Scratch& scratch, const Tensor& x, const Tensor& h, const Tensor& scaled, const Tensor& y);

// With G = gᵀ·h: dweight = diag(scale)·G, dscale_i = Σ_j G_ij W_ij.
void project_gradients(Scratch& scratch, const Tensor& g, const Tensor& h, const Tensor& weight, const Tensor& scale,
                       const Tensor& dweight, const Tensor& dscale);

}  // namespace fairway::cuda
