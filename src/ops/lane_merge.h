// End of the lanes: y = ½(lane0 + lane1) (spec §5.2).
#pragma once

#include "ops/op.h"

namespace fairway {

struct LaneMerge {
  static constexpr std::string_view name = "lane_merge";
  static constexpr bool differentiable = true;
  struct In {
    Tensor lane0, lane1;  // (M, D)
  };
  struct Out {
    Tensor y;  // (M, D)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
