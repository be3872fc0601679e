// y = a + b.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Add {
  static constexpr std::string_view name = "add";
  static constexpr bool differentiable = true;
  struct In {
    Tensor a, b;  // (M, D)
  };
  struct Out {
    Tensor y;  // (M, D)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
