// Two residual lanes take the outputs of both sublayers (spec §5.2, §6.11):
// lane_d' = resid[d]·lane_d + post[0][d]·attn + post[1][d]·mlp.
#pragma once

#include "ops/op.h"

namespace fairway {

struct LaneMix {
  static constexpr std::string_view name = "lane_mix";
  static constexpr bool differentiable = true;
  struct In {
    Tensor lane0, lane1;  // (M, D)
    Tensor attn, mlp;     // (M, D)
    Tensor resid;         // (2)
    Tensor post;          // (2, 2): [attention|MLP][lane]
  };
  struct Out {
    Tensor lane0, lane1;  // (M, D)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
