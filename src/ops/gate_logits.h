// How far the sparse gate opens each head, before the sigmoid (spec A.3): logit_h = gate_h · a[0:W], of the block's normed
// input. An op of its own, called before the projections, so that the gradient of a is theirs, to which W columns are added.
#pragma once

#include "ops/op.h"

namespace fairway {

struct GateLogits {
  static constexpr std::string_view name = "gate_logits";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T a;     // (M, D)
    T gate;  // (H, W), W <= D
  };
  template <class T>
  struct OutOf {
    T logit;  // (M, H)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.a = arg::activation, .gate = arg::vector};
  static constexpr OutOf<Arg> kOut{.logit = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
