// Forward sees the weights on the quantizer's grid, backward passes the gradient through unchanged (spec §11.3; scoring spec
// §4.11, grids of §4.2 and §4.3b). Per row: s = max(reach/levels, scale_floor), wq = clamp(round_half_even(w/s), −levels,
// levels)·s. The reach is absmax or, with deviations, k times the unbiased standard deviation; a row whose absmax lies beyond
// kDegenerate times that has absmax again.
#pragma once

#include "ops/op.h"

namespace fairway {

struct FakeQuant {
  static constexpr std::string_view name = "fake_quant";
  static constexpr bool differentiable = true;
  int32_t levels = 31;     // 2^(bits−1) − 1
  double scale_floor = 0;  // smallest step; the published rule has 1/31
  double deviations = 0;   // k of SDClip; 0: the row reaches to its absmax
  bool half_step = false;  // s rounded to half precision, as it is stored
  static constexpr double kDegenerate = 2;
  template <class T>
  struct InOf {
    T weight;  // (R, C)
  };
  template <class T>
  struct OutOf {
    T quantized;  // (R, C)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.weight = arg::state.unread()};
  static constexpr OutOf<Arg> kOut{.quantized = arg::matrix};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
