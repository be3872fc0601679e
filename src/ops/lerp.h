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
  struct In {
    Tensor target;  // read and written
    Tensor source;
    Tensor scalars;  // f64 (kStepScalars); needed with slot
  };
  using Out = None;
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
