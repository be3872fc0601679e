// MLP with LeakyReLU(½)², into the residual stream: pre = m·Upᵀ, act_grad = pre > 0 ? 2·pre : ½·pre, post = ½·act_grad·pre,
// y = x + scale⊙(post·Downᵀ); without x just the second term (spec §4.8, §6.3, §6.4). pre is never stored.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Mlp {
  static constexpr std::string_view name = "mlp";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T x;      // (M, D) optional
    T m;      // (M, D)
    T up;     // (F, D)
    T down;   // (D, F)
    T scale;  // (D)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  template <class T>
  struct SavedOf {
    T act_grad;  // (M, F); the cuda backend keeps less in bf16 (ops/cuda/mlp_saved.h)
    T post;      // (M, F)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.x = arg::activation.optional().passes(),
                                 .m = arg::activation,
                                 .up = arg::matrix,
                                 .down = arg::matrix,
                                 .scale = arg::vector};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  static constexpr SavedOf<Arg> kSaved{.act_grad = arg::activation, .post = arg::activation};
  OpPlan plan(const In&) const;  // backward workspace: G (D, F), diag(scale)·Down (D, F), dpre (M, F)
};

}  // namespace fairway
