// Forward sees the weights on the quantizer's grid, backward passes the gradient through unchanged (spec §11.3; other spec
// §4.11). Per row: s = max(absmax/levels, scale_floor), wq = clamp(round_half_even(w/s), −levels, levels)·s.
#pragma once

#include "ops/op.h"

namespace fairway {

struct FakeQuant {
  static constexpr std::string_view name = "fake_quant";
  static constexpr bool differentiable = true;
  int32_t levels = 31;     // 2^(bits−1) − 1
  double scale_floor = 0;  // smallest step; the published rule has 1/31
  struct In {
    Tensor weight;  // (R, C)
  };
  struct Out {
    Tensor quantized;  // (R, C)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
