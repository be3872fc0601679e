// Token embedding: y[m] = table[tokens[m]].
#pragma once

#include "ops/op.h"

namespace fairway {

struct Embed {
  static constexpr std::string_view name = "embed";
  static constexpr bool differentiable = true;
  struct In {
    Tensor tokens;  // i32 (M)
    Tensor table;   // (V, D)
  };
  struct Out {
    Tensor y;  // (M, D)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
