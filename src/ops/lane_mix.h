// Two residual lanes take the outputs of both sublayers (spec §5.2, §6.11):
// lane_d' = resid[d]·lane_d + post[0][d]·attn + post[1][d]·mlp.
#pragma once

#include "ops/op.h"

namespace fairway {

struct LaneMix {
  static constexpr std::string_view name = "lane_mix";
  static constexpr bool differentiable = true;
  template <class T>
  struct InOf {
    T lane0, lane1;  // (M, D)
    T attn, mlp;     // (M, D)
    T resid;         // (2)
    T post;          // (2, 2): [attention|MLP][lane]
  };
  template <class T>
  struct OutOf {
    T lane0, lane1;  // (M, D)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.lane0 = arg::activation,
                                 .lane1 = arg::activation,
                                 .attn = arg::activation,
                                 .mlp = arg::activation,
                                 .resid = arg::vector,
                                 .post = arg::vector};
  static constexpr OutOf<Arg> kOut{.lane0 = arg::activation, .lane1 = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
