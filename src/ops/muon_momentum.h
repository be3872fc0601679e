// First half of Muon (spec §8.1.1–3): g = clip[0]·grad, buffer ← μ·buffer + g, u = g + μ·buffer; with row_norm each row of u is
// divided by max(‖row‖, 1e-7). μ is StepScalar::momentum.
#pragma once

#include "ops/op.h"
#include "ops/step_scalars.h"

namespace fairway {

struct MuonMomentum {
  static constexpr std::string_view name = "muon_momentum";
  static constexpr bool differentiable = false;
  bool row_norm = false;
  template <class T>
  struct InOf {
    T grad;     // (n, R, C)
    T buffer;   // (n, R, C) read and written
    T clip;     // f64, first element multiplies grad; optional
    T scalars;  // f64 (kStepScalars)
  };
  template <class T>
  struct OutOf {
    T u;  // (n, R, C)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{
      .grad = arg::state, .buffer = arg::state, .clip = arg::state.optional(), .scalars = arg::state};
  static constexpr OutOf<Arg> kOut{.u = arg::update};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
