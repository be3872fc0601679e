// target = [target +] factor·coefficient·source: clipped gradients of emulated ranks into their mean, and the same between the
// types that ranks exchange.
#pragma once

#include "ops/op.h"

namespace fairway {

struct AccumulateScaled {
  static constexpr std::string_view name = "accumulate_scaled";
  static constexpr bool differentiable = false;
  double factor = 1;
  bool overwrite = false;  // do not read target
  bool round = false;      // a float that bf16 has
  template <class T>
  struct InOf {
    T target;       // read and written; f32 or bf16
    T source;       // same number of elements; f32 or bf16
    T coefficient;  // f64, first element used; optional (1)
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.target = arg::state, .source = arg::state, .coefficient = arg::state.optional()};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
