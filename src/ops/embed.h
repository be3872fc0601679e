// Token embedding: y[m] = table[tokens[m]].
#pragma once

#include "ops/op.h"

namespace fairway {

struct Embed {
  static constexpr std::string_view name = "embed";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T tokens;  // i32 (M)
    T table;   // (V, D)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.tokens = arg::index, .table = arg::matrix.unread()};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
