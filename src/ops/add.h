// y = a + b.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Add {
  static constexpr std::string_view name = "add";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T a, b;  // (M, D)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.a = arg::activation.unread(), .b = arg::activation.unread()};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
