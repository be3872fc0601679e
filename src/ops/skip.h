// U-Net skip: additive y = x + weight⊙skip; with a gate, γ = σ(gate): y = (1−γ)⊙weight⊙skip + γ⊙x (spec §4.4, §4.10, §6.8).
#pragma once

#include "ops/op.h"

namespace fairway {

struct Skip {
  static constexpr std::string_view name = "skip";
  static constexpr bool differentiable = true;
  struct In {
    Tensor x;       // (M, D)
    Tensor skip;    // (M, D) an encoder layer's output
    Tensor weight;  // (D)
    Tensor gate;    // (D) optional
  };
  struct Out {
    Tensor y;  // (M, D)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
