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
  struct In {
    Tensor y;  // (M, H·E)
    Tensor v;  // (M, K·E)
  };
  struct Out {
    Tensor z;  // (M, H·E)
  };
  struct Saved {
    Tensor dot;  // (M, H) y_h·u; with z it stands for y in the backward pass
  };
  OpPlan plan(const In&) const;
};

}  // namespace fairway
