// Value embedding joins the values of a layer: y = v + scale·embed (spec §4.6.2).
#pragma once

#include "ops/op.h"

namespace fairway {

struct ValueMix {
  static constexpr std::string_view name = "value_mix";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T v;      // (M, K·E)
    T embed;  // (M, K·E)
    T scale;  // (1)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, K·E)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.v = arg::activation.unread(), .embed = arg::activation, .scale = arg::vector};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
