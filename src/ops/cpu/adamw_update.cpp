#include "ops/cpu/adamw_factors.h"
#include "ops/cpu/blend.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const AdamWUpdate& op, const Forward<AdamWUpdate>& call) {
  const double lr = op.learning_rate * scalar(call.in.scalars, StepScalar::learning_rate_scale);
  const AdamWFactors factors =
      adamw_factors(op, lr, scalar(call.in.scalars, StepScalar::adam_step), factor_or_one(call.in.clip));
  const UpdateKernels& update = kernels().update;
  float *param = call.in.param.as<float>(), *m = call.in.m.as<float>(), *v = call.in.v.as<float>();
  const float* grad = call.in.grad.as<float>();
  for_elements(*call.queue, call.in.param.numel(), [&](RowRange range) { update.adamw(factors, range, param, grad, m, v); });
}

}  // namespace fairway::cpu
