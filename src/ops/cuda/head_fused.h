// The head's product with softcap, exponentials and their sums in its epilogue, for bf16 on Hopper (sm90/head.cu). No logits
// are stored: what training keeps of row m is W_mv = e^z·(1 − (z/cap)²), and at the target (e^z − Σe^z)·(1 − (z/cap)²). The
// gradient of the logits is then a row's factor times W, so that backward is two products. Both directions ask
// suits_fused_head.
#pragma once

#include "ops/cuda/context.h"
#include "ops/softcap_cross_entropy.h"

namespace fairway::cuda {

bool suits_fused_head(const Context& context, const SoftcapCrossEntropy& op, const SoftcapCrossEntropy::In& in);

// lse, nll, and W in the place of logits where it is wanted.
void fused_head_forward(Scratch& scratch, const SoftcapCrossEntropy& op, const Forward<SoftcapCrossEntropy>& f);
void fused_head_backward(Scratch& scratch, const Backward<SoftcapCrossEntropy>& b);

}  // namespace fairway::cuda
