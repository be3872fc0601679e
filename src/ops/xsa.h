// Exclusive self-attention: takes from each head's output its component along the token's own value vector (spec §4.6.7, §6.5):
// u = v_c/max(‖v_c‖, 1e-12), z_h = y_h − (y_h·u) u.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Xsa {
  static constexpr std::string_view name = "xsa";
  static constexpr bool differentiable = true;
  int64_t heads = 0;     // H
  int64_t kv_heads = 0;  // K
  template <class T>
  struct InOf {
    T y;  // (M, H·E)
    T v;  // (M, K·E)
  };
  template <class T>
  struct OutOf {
    T z;  // (M, H·E)
  };
  template <class T>
  struct SavedOf {
    T dot;  // (M, H) y_h·u; with z it stands for y in the backward pass
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.y = arg::activation.unread(), .v = arg::activation};
  static constexpr OutOf<Arg> kOut{.z = arg::activation.reread()};
  static constexpr SavedOf<Arg> kSaved{.dot = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
