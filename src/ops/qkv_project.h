// The three attention inputs of a block: q = x·Wqᵀ, k = x·Wkᵀ, v = x·Wvᵀ.
#pragma once

#include "ops/op.h"

namespace fairway {

struct QkvProject {
  static constexpr std::string_view name = "qkv_project";
  static constexpr bool differentiable = true;
  struct In {
    Tensor x;         // (M, D)
    Tensor weight_q;  // (H·E, D)
    Tensor weight_k;  // (K·E, D)
    Tensor weight_v;  // (K·E, D)
  };
  struct Out {
    Tensor q;  // (M, H·E)
    Tensor k;  // (M, K·E)
    Tensor v;  // (M, K·E)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
