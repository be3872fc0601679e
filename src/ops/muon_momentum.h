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
  struct In {
    Tensor grad;     // (n, R, C)
    Tensor buffer;   // (n, R, C) read and written
    Tensor clip;     // f64, first element multiplies grad; optional
    Tensor scalars;  // f64 (kStepScalars)
  };
  struct Out {
    Tensor u;  // (n, R, C)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
