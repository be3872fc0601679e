// Output projection into the residual stream: y = x + scale⊙(h·Wᵀ); without x just the second term (lanes) (spec §4.5.4, §6.4).
// Backward stores no h·Wᵀ: with G = gᵀ·h, dW = diag(scale)·G and dscale_i = Σ_j G_ij W_ij.
#pragma once

#include "ops/op.h"

namespace fairway {

struct ProjectResidual {
  static constexpr std::string_view name = "project_residual";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T x;       // (M, N) optional
    T h;       // (M, C)
    T weight;  // (N, C)
    T scale;   // (N)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, N)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{
      .x = arg::activation.optional().passes(), .h = arg::activation, .weight = arg::matrix, .scale = arg::vector};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;  // backward workspace: G (N, C), then diag(scale)·W (N, C)
};

}  // namespace fairway
