// Gradient clipping without a host round trip: norm = √Σ totals, coefficient = min(1, max_norm/(norm + 1e-6)) (spec §7).
#pragma once

#include "ops/op.h"

namespace fairway {

struct ClipCoefficient {
  static constexpr std::string_view name = "clip_coefficient";
  static constexpr bool differentiable = false;
  double max_norm = 0;  // 0: no clipping, coefficient 1
  template <class T>
  struct InOf {
    T totals;  // f64 (n)
    T clip;    // f64 (2), written: coefficient, norm
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.totals = arg::state, .clip = arg::state};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
