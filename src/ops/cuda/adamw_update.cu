// Step scalars are read on the device.
#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

__global__ void adamw(int64_t count, AdamWUpdate op, float* param, const float* grad, float* m, float* v, const double* clip,
                      const double* scalars) {
  const double lr = op.learning_rate * slot(scalars, StepScalar::learning_rate_scale), t = slot(scalars, StepScalar::adam_step);
  const double c1 = 1 - pow(op.beta1, t), c2 = sqrt(1 - pow(op.beta2, t));
  const auto b1 = static_cast<float>(op.beta1), b2 = static_cast<float>(op.beta2), eps = static_cast<float>(op.eps);
  const auto r1 = static_cast<float>(1 - op.beta1), r2 = static_cast<float>(1 - op.beta2);
  const auto keep = static_cast<float>(1 - lr * op.weight_decay), step = static_cast<float>(lr / c1);
  const auto inverse = static_cast<float>(1 / c2), factor = static_cast<float>(clip != nullptr ? clip[0] : 1.0);
  for (int64_t i = first_index(); i < count; i += index_stride()) {
    const float g = factor * grad[i], first = b1 * m[i] + r1 * g, second = b2 * v[i] + r2 * g * g;
    m[i] = first;
    v[i] = second;
    param[i] = param[i] * keep - step * first / (sqrtf(second) * inverse + eps);
  }
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
