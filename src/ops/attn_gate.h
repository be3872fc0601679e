// Sparse head gate (spec A.3): z_h = σ(½·(gate_h · a[0:W]))·y_h.
#pragma once

#include "ops/op.h"

namespace fairway {

struct AttnGate {
  static constexpr std::string_view name = "attn_gate";
  static constexpr bool differentiable = true;
  static constexpr double kScale = 0.5;
  int64_t heads = 0;  // H
  struct In {
    Tensor a;     // (M, D) the block's normed input
    Tensor y;     // (M, H·E)
    Tensor gate;  // (H, W), W <= D
  };
  struct Out {
    Tensor z;  // (M, H·E)
  };
  struct Saved {
    Tensor open;  // (M, H) the σ of each head
  };
  OpPlan plan(const In&) const;
};

}  // namespace fairway
