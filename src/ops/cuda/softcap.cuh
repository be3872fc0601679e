// The softcap of logits as kernels over their rows take it.
#pragma once

#include "ops/cuda/elements.cuh"

namespace fairway::cuda {

// In bf16 the inputs carry eight bits, and the fast exponential is far more exact than that.
template <class T>
__device__ float soft_cap(float logit, float cap) {
  if constexpr (sizeof(T) == 2) {
    return cap * (1.0f - 2.0f / (__expf(2.0f * logit / cap) + 1.0f));
  } else {
    return cap * tanhf(logit / cap);
  }
}

template <class T>
__device__ float exponential(float x) {
  return sizeof(T) == 2 ? __expf(x) : expf(x);
}

}  // namespace fairway::cuda
