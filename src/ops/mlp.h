// MLP with LeakyReLU(½)², into the residual stream: pre = m·Upᵀ, act_grad = pre > 0 ? 2·pre : ½·pre, post = ½·act_grad·pre,
// y = x + scale⊙(post·Downᵀ); without x just the second term (spec §4.8, §6.3, §6.4). pre is never stored.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Mlp {
  static constexpr std::string_view name = "mlp";
  static constexpr bool differentiable = true;
  struct In {
    Tensor x;      // (M, D) optional
    Tensor m;      // (M, D)
    Tensor up;     // (F, D)
    Tensor down;   // (D, F)
    Tensor scale;  // (D)
  };
  struct Out {
    Tensor y;  // (M, D)
  };
  struct Saved {
    Tensor act_grad;  // (M, F); the cuda backend keeps less in bf16 (ops/cuda/mlp_saved.h)
    Tensor post;      // (M, F)
  };
  OpPlan plan(const In&) const;  // backward workspace: G (D, F), diag(scale)·Down (D, F), dpre (M, F)
};

}  // namespace fairway
