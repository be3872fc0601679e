// Tensors in scratch memory, and a gradient that passes through unchanged. Plain C++, also for files that g++ compiles.
#pragma once

#include "ops/cuda/context.h"

namespace fairway::cuda {

// target (+)= source, element by element; the rows of either may have a pitch.
void pass_through(Scratch& scratch, const Tensor& source, const Tensor& target);

// Whether every row may be read 16 bytes at a time, as libraries and copy engines want it.
inline bool aligned_rows(const Tensor& t) {
  const auto bytes = static_cast<size_t>(t.pitch > 0 ? t.pitch : t.cols()) * size_of(t.spec.dtype);
  return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && bytes % 16 == 0;
}

// A tensor in scratch memory.
inline Tensor scratch_tensor(Scratch& scratch, Shape shape, DType dtype) {
  Tensor out = make_view(nullptr, {shape, dtype});
  out.data = scratch.take<std::byte>(static_cast<int64_t>(out.spec.bytes()));
  out.device = Device::cuda;
  out.pitch = 0;
  return out;
}

}  // namespace fairway::cuda
