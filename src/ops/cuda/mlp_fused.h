// Products with the MLP's activation in their epilogue, for bf16 on Hopper (sm90/mlp.cu). For other shapes mlp.cu takes a
// product and an elementwise pass. Both directions ask suits_fused_mlp, since each way has its own order of signs
// (mlp_saved.h).
#pragma once

#include "ops/cuda/context.h"

namespace fairway::cuda {

bool suits_fused_mlp(const Context& context, const Tensor& m, int64_t hidden);

// post = (pre > 0 ? pre : pre/2)² of pre = m·upᵀ; the signs of pre where they are wanted.
void fused_up(Scratch& scratch, const Tensor& m, const Tensor& up, const Tensor& post, const Tensor& signs);

// dpre = (g·diag(scale)·down)⊙slope, slope = 2·√post or −√post by sign.
struct FusedSlope {
  Tensor g, down, scale, post, signs, dpre;
};
void fused_down_gradient(Scratch& scratch, const FusedSlope& args);

}  // namespace fairway::cuda
