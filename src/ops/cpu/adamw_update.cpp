#include <cmath>

#include "ops/cpu/blend.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const AdamWUpdate& op, const Forward<AdamWUpdate>& call) {
  const double lr = op.learning_rate * scalar(call.in.scalars, StepScalar::learning_rate_scale);
  const double t = scalar(call.in.scalars, StepScalar::adam_step);
  const AdamWFactors factors{.clip = static_cast<float>(factor_or_one(call.in.clip)),
                             .beta1 = static_cast<float>(op.beta1),
                             .one_minus_beta1 = static_cast<float>(1 - op.beta1),
                             .beta2 = static_cast<float>(op.beta2),
                             .one_minus_beta2 = static_cast<float>(1 - op.beta2),
                             .decay = static_cast<float>(1 - lr * op.weight_decay),
                             .step = static_cast<float>(lr / (1 - std::pow(op.beta1, t))),
                             .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(op.beta2, t))),
                             .eps = static_cast<float>(op.eps)};
  const UpdateKernels& update = kernels().update;
  float *param = call.in.param.as<float>(), *m = call.in.m.as<float>(), *v = call.in.v.as<float>();
  const float* grad = call.in.grad.as<float>();
  for_elements(*call.queue, call.in.param.numel(), [&](RowRange range) { update.adamw(factors, range, param, grad, m, v); });
}

}  // namespace fairway::cpu
