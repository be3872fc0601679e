// Attention of bf16 heads of 64 on Hopper, whole sequences or packed documents; the same bits every time (sm90/attention_*.cu).
#pragma once

#include "ops/attention.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

// Whether the device and the shapes are for these kernels; the same answer in both directions.
bool suits_attention_tiles(const Context& context, const Attention& op, const Attention::In& in);

// HeadOutput is part of them. Log-sum-exps are saved as (B, H, T), with B = 1 for packed documents. Backward begins with
// `output`, HeadOutput's gradient, where the op asks for it.
void attention_tiles_forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f);
void attention_tiles_backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b,
                              const Backward<HeadOutput>& output);

}  // namespace fairway::cuda
