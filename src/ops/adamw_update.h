// AdamW with decoupled decay (spec §7): lr = base·StepScalar::learning_rate_scale, t = StepScalar::adam_step;
// g = clip[0]·grad, p ← p(1 − lr·wd), m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², p ← p − lr·(m/(1−β₁ᵗ))/(√v/√(1−β₂ᵗ) + ε).
#pragma once

#include "ops/op.h"
#include "ops/step_scalars.h"

namespace fairway {

struct AdamWUpdate {
  static constexpr std::string_view name = "adamw_update";
  static constexpr bool differentiable = false;
  double learning_rate = 0, weight_decay = 0, beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  template <class T>
  struct InOf {
    T param;  // read and written
    T grad;
    T m, v;     // read and written
    T clip;     // f64, first element multiplies grad; optional
    T scalars;  // f64 (kStepScalars)
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.param = arg::state,
                                 .grad = arg::state,
                                 .m = arg::state,
                                 .v = arg::state,
                                 .clip = arg::state.optional(),
                                 .scalars = arg::state};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
