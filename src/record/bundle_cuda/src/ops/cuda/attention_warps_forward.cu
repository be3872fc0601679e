// A record's kernels are Hopper's.
#include "ops/cuda/attention_warps.h"

namespace fairway::cuda {

bool suits_attention_warps(const Context&, const Attention&, const Attention::In&) { return false; }
void attention_warps_forward(Scratch&, const Attention&, const Forward<Attention>&) {}

}  // namespace fairway::cuda
