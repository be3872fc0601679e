// total[slot] = Σ x², accumulated in double over fixed chunks so that the bits do not depend on the number of threads.
#pragma once

#include "ops/op.h"

namespace fairway {

struct SumSquares {
  static constexpr std::string_view name = "sum_squares";
  static constexpr bool differentiable = false;
  int64_t slot = 0;
  struct In {
    Tensor x;
    Tensor totals;  // f64 (n), one element written
  };
  using Out = None;
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
