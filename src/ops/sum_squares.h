// total[slot] = Σ x², accumulated in double over fixed chunks so that the bits do not depend on the number of threads.
#pragma once

#include "ops/op.h"

namespace fairway {

struct SumSquares {
  static constexpr std::string_view name = "sum_squares";
  static constexpr bool differentiable = false;
  int64_t slot = 0;
  template <class T>
  struct InOf {
    T x;
    T totals;  // f64 (n), one element written
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.x = arg::state, .totals = arg::state};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
