// Mix with the previous position by a gate per channel: y_t = (1−g)⊙u_t + g⊙u_{t−1}, g = σ(gate), u_{−1} = 0 (spec §4.3, §6.9).
#pragma once

#include "ops/op.h"

namespace fairway {

struct SmearGate {
  static constexpr std::string_view name = "smear_gate";
  static constexpr bool differentiable = true;
  int64_t row_length = 0;  // T
  template <class T>
  struct InOf {
    T u;     // (M, D)
    T gate;  // (D)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.u = arg::activation, .gate = arg::vector};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
