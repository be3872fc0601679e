// AdamW of one number (ops/adamw_update.h), for every op that takes such steps: `Op` has betas, eps and weight_decay.
#pragma once

namespace fairway::cuda {

struct AdamWRates {
  float b1, b2, r1, r2, eps, keep, step, inverse;

  template <class Op>
  __device__ AdamWRates(const Op& op, double lr, double t)
      : b1(static_cast<float>(op.beta1)),
        b2(static_cast<float>(op.beta2)),
        r1(static_cast<float>(1 - op.beta1)),
        r2(static_cast<float>(1 - op.beta2)),
        eps(static_cast<float>(op.eps)),
        keep(static_cast<float>(1 - lr * op.weight_decay)),
        step(static_cast<float>(lr / (1 - pow(op.beta1, t)))),
        inverse(static_cast<float>(1 / sqrt(1 - pow(op.beta2, t)))) {}

  __device__ void take(float g, float& param, float& m, float& v) const {
    const float first = b1 * m + r1 * g, second = b2 * v + r2 * g * g;
    m = first;
    v = second;
    param = param * keep - step * first / (sqrtf(second) * inverse + eps);
  }
};

}  // namespace fairway::cuda
