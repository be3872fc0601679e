// Stands in for attention_cudnn.cpp where the cuDNN frontend's headers are absent.
#include "ops/cuda/attention_fused.h"

namespace fairway::cuda {

struct FusedHeads::State {};

FusedHeads::FusedHeads() = default;
FusedHeads::~FusedHeads() = default;
bool FusedHeads::suits(Scratch&, const Attention&, const Attention::In&) { return false; }
void FusedHeads::forward(Scratch&, const Attention&, const Forward<Attention>&) {}
void FusedHeads::backward(Scratch&, const Attention&, const Backward<Attention>&) {}

}  // namespace fairway::cuda
