// Output projection into the residual stream: y = x + scale⊙(h·Wᵀ); without x just the second term (lanes) (spec §4.5.4, §6.4).
// Backward stores no h·Wᵀ: with G = gᵀ·h, dW = diag(scale)·G and dscale_i = Σ_j G_ij W_ij.
#pragma once

#include "ops/op.h"

namespace fairway {

struct ProjectResidual {
  static constexpr std::string_view name = "project_residual";
  static constexpr bool differentiable = true;
  struct In {
    Tensor x;       // (M, N) optional
    Tensor h;       // (M, C)
    Tensor weight;  // (N, C)
    Tensor scale;   // (N)
  };
  struct Out {
    Tensor y;  // (M, N)
  };
  using Saved = None;
  OpPlan plan(const In&) const;  // backward workspace: G (N, C), then diag(scale)·W (N, C)
};

}  // namespace fairway
