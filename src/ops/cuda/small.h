// Small kernels that several ops share: scaled copies of weights, gradients of scales.
#pragma once

#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {

// out[i, :] = scale[i]·w[i, :] in w's type; a scale of one element applies to every row.
void scale_rows(Scratch& scratch, const Tensor& w, const Tensor& scale, const Tensor& out);

// Of y = scale⊙(h·Wᵀ), from G = gᵀ·h (float): dW = diag(scale)·G, dscale_i = Σ_j G_ij·W_ij; a scale of one element sums them
// all.
void scaled_weight_gradients(Scratch& scratch, const Tensor& gram, const Tensor& w, const Tensor& scale, const Tensor& dw,
                             const Tensor& dscale);

}  // namespace fairway::cuda
