// Gradient of the mix and norm at the head of a block, rows of 512 in bf16 on Hopper (sm90/mix_norm.cu).
#pragma once

#include "ops/cuda/context.h"
#include "ops/mix_norm.h"

namespace fairway::cuda {

bool suits_fused_mix(const Context& context, const Backward<MixNorm>& b);
void fused_mix_backward(Scratch& scratch, const MixNorm& op, const Backward<MixNorm>& b);

}  // namespace fairway::cuda
