// Second half of Muon (spec §8.1.7): lr = base·StepScalar::learning_rate_scale, W ← W(1 − lr·wd) − lr·√max(1, R/C)·o.
#pragma once

#include "ops/op.h"
#include "ops/step_scalars.h"

namespace fairway {

struct MuonApply {
  static constexpr std::string_view name = "muon_apply";
  static constexpr bool differentiable = false;
  double learning_rate = 0, weight_decay = 0;
  template <class T>
  struct InOf {
    T param;    // (n, R, C) read and written
    T o;        // (n, R, C); bf16 where ranks exchange it so
    T scalars;  // f64 (kStepScalars)
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.param = arg::state, .o = arg::update, .scalars = arg::state};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
