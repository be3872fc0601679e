// Attention of bf16 heads of 64 on Hopper, whole sequences or packed documents; the same bits every time.
#pragma once

#include "ops/attention.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

// Both are false when the case is not for them, and then did nothing. Log-sum-exps are saved as (B, H, T), with B = 1 for
// packed documents.
bool sm90_attention_forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f);
bool sm90_attention_backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b);

}  // namespace fairway::cuda
