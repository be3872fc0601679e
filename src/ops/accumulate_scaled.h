// target = [target +] factor·coefficient·source: clipped gradients of emulated ranks into their mean, snapshots into SWA.
#pragma once

#include "ops/op.h"

namespace fairway {

struct AccumulateScaled {
  static constexpr std::string_view name = "accumulate_scaled";
  static constexpr bool differentiable = false;
  double factor = 1;
  bool overwrite = false;  // do not read target
  template <class T>
  struct InOf {
    T target;       // read and written
    T source;       // same number of elements
    T coefficient;  // f64, first element used; optional (1)
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.target = arg::state, .source = arg::state, .coefficient = arg::state.optional()};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
