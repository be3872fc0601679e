// What leaves attention's heads, each step where it is asked for. Exclusive self-attention takes from a head's output its
// component along the token's own value vector (spec §4.6.7, §6.5): w_h = y_h − (y_h·u) u, u = v_c/max(‖v_c‖, 1e-12). A sparse
// gate closes heads by the block's normed input (spec A.3): z_h = s_h·w_h, s_h = σ(½·logit_h), of GateLogits.
#pragma once

#include "ops/op.h"

namespace fairway {

struct HeadOutput {
  static constexpr std::string_view name = "head_output";
  static constexpr bool differentiable = true;
  static constexpr double kGateScale = 0.5;
  int64_t heads = 0;     // H
  int64_t kv_heads = 0;  // K
  template <class T>
  struct InOf {
    T y;      // (M, H·E)
    T v;      // (M, K·E) optional: without it w is y
    T logit;  // (M, H) optional: without it z is w
  };
  template <class T>
  struct OutOf {
    T z;  // (M, H·E)
  };
  template <class T>
  struct SavedOf {
    T dot;  // (M, H) y_h·u, 0 without v; with z it stands for y in the backward pass
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{
      .y = arg::activation.unread(), .v = arg::activation.optional(), .logit = arg::statistic.optional()};
  static constexpr OutOf<Arg> kOut{.z = arg::activation.reread()};
  static constexpr SavedOf<Arg> kSaved{.dot = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
