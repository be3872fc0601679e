// The three attention inputs of a block: q = x·Wqᵀ, k = x·Wkᵀ, v = x·Wvᵀ.
#pragma once

#include "ops/op.h"

namespace fairway {

struct QkvProject {
  static constexpr std::string_view name = "qkv_project";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T x;         // (M, D)
    T weight_q;  // (H·E, D)
    T weight_k;  // (K·E, D)
    T weight_v;  // (K·E, D)
  };
  template <class T>
  struct OutOf {
    T q;  // (M, H·E)
    T k;  // (M, K·E)
    T v;  // (M, K·E)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{
      .x = arg::activation, .weight_q = arg::matrix, .weight_k = arg::matrix, .weight_v = arg::matrix};
  static constexpr OutOf<Arg> kOut{.q = arg::activation, .k = arg::activation, .v = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
