// Mix with the previous position by a gate per channel: y_t = (1−g)⊙u_t + g⊙u_{t−1}, g = σ(gate), u_{−1} = 0 (spec §4.3, §6.9).
#pragma once

#include "ops/op.h"

namespace fairway {

struct SmearGate {
  static constexpr std::string_view name = "smear_gate";
  static constexpr bool differentiable = true;
  int64_t row_length = 0;  // T
  struct In {
    Tensor u;     // (M, D)
    Tensor gate;  // (D)
  };
  struct Out {
    Tensor y;  // (M, D)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
