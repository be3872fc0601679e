// Input-dependent smear (spec A.2): y_t = e_t + λ·σ(w·e_t[0:W])·e_{t−1} where t > 0 and tokens[t] is not BOS; else y_t = e_t.
#pragma once

#include "ops/op.h"

namespace fairway {

struct SmearGateInput {
  static constexpr std::string_view name = "smear_gate_input";
  static constexpr bool differentiable = true;
  static constexpr int32_t kNoToken = -1;
  int64_t row_length = 0;  // T
  int32_t bos = 1;         // documents do not leak into each other; kNoToken: they do
  template <class T>
  struct InOf {
    T tokens;  // i32 (M)
    T e;       // (M, D)
    T weight;  // (W), W <= D
    T lambda;  // (1)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.tokens = arg::index, .e = arg::activation, .weight = arg::vector, .lambda = arg::vector};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
