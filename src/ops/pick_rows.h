// Some rows of activations, in their order: y[i] = x[rows[i]]; dx[m] = Σ_{i: rows[i] = m} dy[i].
#pragma once

#include "ops/op.h"

namespace fairway {

struct PickRows {
  static constexpr std::string_view name = "pick_rows";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T rows;  // i32 (N), none smaller than the one before it
    T x;     // (M, C)
  };
  template <class T>
  struct OutOf {
    T y;  // (N, C)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.rows = arg::index, .x = arg::activation.unread()};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
