// End of the lanes: y = ½(lane0 + lane1) (spec §5.2).
#pragma once

#include "ops/op.h"

namespace fairway {

struct LaneMerge {
  static constexpr std::string_view name = "lane_merge";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T lane0, lane1;  // (M, D)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.lane0 = arg::activation.unread(), .lane1 = arg::activation.unread()};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
