// Value embedding joins the values of a layer: y = v + scale·embed (spec §4.6.2).
#pragma once

#include "ops/op.h"

namespace fairway {

struct ValueMix {
  static constexpr std::string_view name = "value_mix";
  static constexpr bool differentiable = true;
  struct In {
    Tensor v;      // (M, K·E)
    Tensor embed;  // (M, K·E)
    Tensor scale;  // (1)
  };
  struct Out {
    Tensor y;  // (M, K·E)
  };
  using Saved = None;
  OpPlan plan(const In&) const;
};

}  // namespace fairway
