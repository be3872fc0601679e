// Descriptions of bf16 tensors for the copy engine; boxes are 64 elements (128 bytes, swizzled) wide.
#pragma once

#include <cuda.h>

#include <span>

#include "ops/cuda/context.h"

namespace fairway::cuda {

// Axes from the innermost, whose elements are dense; pitches in elements, of the others.
CUtensorMap tensor_map(const void* data, std::span<const int64_t> sizes, std::span<const int64_t> pitches,
                       std::span<const int64_t> box);

}  // namespace fairway::cuda
