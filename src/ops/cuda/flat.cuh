// Kernels over flat tensors: where a thread begins and how far it goes, and the numbers that steps change.
#pragma once

#include "ops/cuda/elements.cuh"
#include "ops/step_scalars.h"

namespace fairway::cuda {

__device__ inline double slot(const double* scalars, StepScalar which) { return scalars[static_cast<int>(which)]; }
__device__ inline int64_t first_index() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t index_stride() { return int64_t{gridDim.x} * blockDim.x; }

}  // namespace fairway::cuda
