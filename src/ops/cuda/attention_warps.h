// Attention of bf16 heads of 64 on any GPU from Ampere on, whole sequences or packed documents, of any length; the same bits
// every time (attention_warps_*.cu). Hopper's path has kernels of its own (attention_tiles.h); whole sequences go to cuDNN
// where it takes them (attention_fused.h).
#pragma once

#include "ops/attention.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

// Whether the path and the shapes are for these kernels; the same answer in both directions. Never on Hopper's path: a record,
// which is built without these kernels, gives its bits too.
bool suits_attention_warps(const Context& context, const Attention& op, const Attention::In& in);

// HeadOutput is part of it. Log-sum-exps are saved as (B, H, T), with B = 1 for packed documents.
void attention_warps_forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f);
// The call's dout.z is dy here; z and dz are the op's own result and its gradient, of which Σ z·dz is needed.
struct HeadResult {
  Tensor z, dz;
};
void attention_warps_backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b, const HeadResult& result);

}  // namespace fairway::cuda
