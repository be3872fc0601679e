// Stands in for attention_cudnn.cpp where the cuDNN frontend's headers are absent.
#include "ops/cuda/attention_fused.h"

namespace fairway::cuda {

struct FusedHeads::State {};

FusedHeads::FusedHeads() = default;
FusedHeads::~FusedHeads() = default;
bool FusedHeads::suits(Scratch&, const Attention&, const Attention::In&) { return false; }
bool FusedHeads::forward(Scratch&, const Attention&, const Forward<Attention>&) { return false; }
bool FusedHeads::backward(Scratch&, const Attention&, const Backward<Attention>&) { return false; }

}  // namespace fairway::cuda
