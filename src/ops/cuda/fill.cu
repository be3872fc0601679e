#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

__global__ void fill(int64_t count, float value, float* x) {
  for (int64_t i = first_index(); i < count; i += index_stride()) x[i] = value;
}

}  // namespace

void forward(const Fill& op, const Forward<Fill>& f) {
  Scratch scratch(f.queue);
  if (op.value == 0) {
    check(cudaMemsetAsync(f.in.x.data, 0, f.in.x.spec.bytes(), scratch.stream()), "cudaMemsetAsync");
    return;
  }
  fill<<<blocks_for(scratch.context(), f.in.x.numel()), kThreads, 0, scratch.stream()>>>(
      f.in.x.numel(), static_cast<float>(op.value), pointer<float>(f.in.x));
  check_launch("fill");
}

}  // namespace fairway::cuda
