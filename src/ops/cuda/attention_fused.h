// Attention of bf16 heads by cuDNN's fused kernels, deterministic in both directions. Graphs are made when a shape is first
// seen and kept. Where cuDNN is absent or has no kernel for the device and the case, callers use our own.
#pragma once

#include <memory>

#include "ops/attention.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

class FusedHeads {
 public:
  FusedHeads();
  ~FusedHeads();
  bool suits(Scratch& scratch, const Attention& op, const Attention::In& in);
  // Without HeadOutput: z is what leaves the heads, in both directions. The saved log-sum-exps are laid out (B, H, T). False:
  // nothing was done, since cuDNN has no kernel; it says so once.
  bool forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f);
  bool backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fairway::cuda
