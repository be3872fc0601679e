// What a step of AdamW multiplies with, for every op that takes such steps: `Op` has betas, eps and weight_decay.
#pragma once

#include <cmath>

#include "ops/cpu/isa/row_kernels.h"

namespace fairway::cpu {

template <class Op>
AdamWFactors adamw_factors(const Op& op, double lr, double t, double clip) {
  return {.clip = static_cast<float>(clip),
          .beta1 = static_cast<float>(op.beta1),
          .one_minus_beta1 = static_cast<float>(1 - op.beta1),
          .beta2 = static_cast<float>(op.beta2),
          .one_minus_beta2 = static_cast<float>(1 - op.beta2),
          .decay = static_cast<float>(1 - lr * op.weight_decay),
          .step = static_cast<float>(lr / (1 - std::pow(op.beta1, t))),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(op.beta2, t))),
          .eps = static_cast<float>(op.eps)};
}

}  // namespace fairway::cpu
