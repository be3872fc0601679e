// Step scalars are read on the device.
#include "ops/cuda/adamw.cuh"
#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

__global__ void adamw(int64_t count, AdamWUpdate op, float* param, const float* grad, float* m, float* v, const double* clip,
                      const double* scalars) {
  const AdamWRates rates(op, op.learning_rate * slot(scalars, StepScalar::learning_rate_scale),
                         slot(scalars, StepScalar::adam_step));
  const auto factor = static_cast<float>(clip != nullptr ? clip[0] : 1.0);
  for (int64_t i = first_index(); i < count; i += index_stride()) rates.take(factor * grad[i], param[i], m[i], v[i]);
}

}  // namespace

void forward(const AdamWUpdate& op, const Forward<AdamWUpdate>& f) {
  Scratch scratch(f.queue);
  adamw<<<blocks_for(scratch.context(), f.in.param.numel()), kThreads, 0, scratch.stream()>>>(
      f.in.param.numel(), op, pointer<float>(f.in.param), pointer<float>(f.in.grad), pointer<float>(f.in.m),
      pointer<float>(f.in.v), pointer<double>(f.in.clip), pointer<double>(f.in.scalars));
  check_launch("adamw_update");
}

}  // namespace fairway::cuda
