// target = [target +] factor·coefficient·source: clipped gradients of emulated ranks into their mean, snapshots into SWA.
#pragma once

#include "ops/op.h"

namespace fairway {

struct AccumulateScaled {
  static constexpr std::string_view name = "accumulate_scaled";
  static constexpr bool differentiable = false;
  double factor = 1;
  bool overwrite = false;  // do not read target
  struct In {
    Tensor target;       // read and written
    Tensor source;       // same number of elements
    Tensor coefficient;  // f64, first element used; optional (1)
  };
  using Out = None;
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
