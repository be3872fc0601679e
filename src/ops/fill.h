// x = value, everywhere.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Fill {
  static constexpr std::string_view name = "fill";
  static constexpr bool differentiable = false;
  double value = 0;
  template <class T>
  struct InOf {
    T x;  // written
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.x = arg::state};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
