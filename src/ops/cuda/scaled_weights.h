// Products with weights whose rows are scaled: copies, the output projection that attention and MLP share, and gradients. The
// scale is folded into the weights, so that one product with C = x does y = x + h·(diag(scale)·W)ᵀ.
#pragma once

#include "ops/cuda/gemm.h"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {

// out[i, :] = scale[i]·w[i, :] in w's type; a scale of one element applies to every row.
void scale_rows(Scratch& scratch, const Tensor& w, const Tensor& scale, const Tensor& out);

// Of y = scale⊙(h·Wᵀ), from G = gᵀ·h (float): dW = diag(scale)·G, dscale_i = Σ_j G_ij·W_ij; a scale of one element sums them
// all.
void scaled_weight_gradients(Scratch& scratch, const Tensor& gram, const Tensor& w, const Tensor& scale, const Tensor& dw,
                             const Tensor& dscale);

Tensor scaled_weight(Scratch& scratch, const Tensor& weight, const Tensor& scale);  // diag(scale)·W in scratch

// y = x + h·scaledᵀ; x may be absent.
void project_into(Scratch& scratch, const Tensor& x, const Tensor& h, const Tensor& scaled, const Tensor& y);

// With G = gᵀ·h: dweight = diag(scale)·G, dscale_i = Σ_j G_ij W_ij.
void project_gradients(Scratch& scratch, const Tensor& g, const Tensor& h, const Tensor& weight, const Tensor& scale,
                       const Tensor& dweight, const Tensor& dscale);

}  // namespace fairway::cuda
