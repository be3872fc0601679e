// Causal softmax attention with grouped key/value heads; query head h reads kv head h / (H/K) (spec §4.6.6).
// With segments, row m attends to rows segment_start[m] … m; without, to its own sequence of row_length up to itself.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Attention {
  static constexpr std::string_view name = "attention";
  static constexpr bool differentiable = true;
  static constexpr double kBackwardFlops = 2.5;  // over those of forward: five products where forward has two
  int64_t row_length = 0;                        // T
  int64_t heads = 0;                             // H
  int64_t kv_heads = 0;                          // K
  double scale = 1;                              // 1/√E
  template <class T>
  struct InOf {
    T q;              // (M, H·E)
    T k;              // (M, K·E)
    T v;              // (M, K·E)
    T segment_start;  // i32 (M), non-decreasing, optional
  };
  template <class T>
  struct OutOf {
    T y;  // (M, H·E)
  };
  template <class T>
  struct SavedOf {
    T lse;  // (M, H) log-sum-exp of each row's scaled scores
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{
      .q = arg::activation, .k = arg::activation, .v = arg::activation, .segment_start = arg::index.optional()};
  static constexpr OutOf<Arg> kOut{.y = arg::activation.reread()};
  static constexpr SavedOf<Arg> kSaved{.lse = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
