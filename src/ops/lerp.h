// Moving average: target ← (1 − w)·target + w·source with a fixed w (EMA: 1 − β, spec §11.1) or, if slot is set, the w that the
// host put into the step scalars (SWA: 1/count).
#pragma once

#include <optional>

#include "ops/op.h"
#include "ops/step_scalars.h"

namespace fairway {

struct Lerp {
  static constexpr std::string_view name = "lerp";
  static constexpr bool differentiable = false;
  double weight = 0;
  std::optional<StepScalar> slot;
  template <class T>
  struct InOf {
    T target;  // read and written
    T source;
    T scalars;  // f64 (kStepScalars); needed with slot
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.target = arg::state, .source = arg::state, .scalars = arg::state.optional()};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
