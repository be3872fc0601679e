// U-Net skip: additive y = x + weight⊙skip; with a gate, γ = σ(gate): y = (1−γ)⊙weight⊙skip + γ⊙x (spec §4.4, §4.10, §6.8).
#pragma once

#include "ops/op.h"

namespace fairway {

struct Skip {
  static constexpr std::string_view name = "skip";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T x;       // (M, D)
    T skip;    // (M, D) an encoder layer's output
    T weight;  // (D)
    T gate;    // (D) optional
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.x = arg::activation.passes(),
                                 .skip = arg::activation,
                                 .weight = arg::vector,
                                 .gate = arg::vector.optional().stops_passing()};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
