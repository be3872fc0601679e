// Tensors in scratch memory, and a gradient that passes through unchanged. Plain C++, also for files that g++ compiles.
#pragma once

#include "ops/cuda/context.h"

namespace fairway::cuda {

// target (+)= source, element by element; the rows of either may have a pitch.
void pass_through(Scratch& scratch, const Tensor& source, const Tensor& target);

// A tensor in scratch memory.
inline Tensor scratch_tensor(Scratch& scratch, Shape shape, DType dtype) {
  Tensor out = make_view(nullptr, {shape, dtype});
  out.data = scratch.take<std::byte>(static_cast<int64_t>(out.spec.bytes()));
  out.device = Device::cuda;
  out.pitch = 0;
  return out;
}

}  // namespace fairway::cuda
