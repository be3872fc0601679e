// x = value, everywhere.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Fill {
  static constexpr std::string_view name = "fill";
  static constexpr bool differentiable = false;
  double value = 0;
  struct In {
    Tensor x;  // written
  };
  using Out = None;
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
