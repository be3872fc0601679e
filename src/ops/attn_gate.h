// Sparse head gate (spec A.3): z_h = σ(½·(gate_h · a[0:W]))·y_h.
#pragma once

#include "ops/op.h"

namespace fairway {

struct AttnGate {
  static constexpr std::string_view name = "attn_gate";
  static constexpr bool differentiable = true;
  static constexpr double kScale = 0.5;
  int64_t heads = 0;  // H
  template <class T>
  struct InOf {
    T a;     // (M, D) the block's normed input
    T y;     // (M, H·E)
    T gate;  // (H, W), W <= D
  };
  template <class T>
  struct OutOf {
    T z;  // (M, H·E)
  };
  template <class T>
  struct SavedOf {
    T open;  // (M, H) the σ of each head
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.a = arg::activation, .y = arg::activation, .gate = arg::vector};
  static constexpr OutOf<Arg> kOut{.z = arg::activation};
  static constexpr SavedOf<Arg> kSaved{.open = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
