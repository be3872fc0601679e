// Causal softmax attention with grouped key/value heads; query head h reads kv head h / (H/K) (spec §4.6.6).
// With segments, row m attends to rows segment_start[m] … m; without, to its own sequence of row_length up to itself.
#pragma once

#include "ops/op.h"

namespace fairway {

struct Attention {
  static constexpr std::string_view name = "attention";
  static constexpr bool differentiable = true;
  int64_t row_length = 0;  // T
  int64_t heads = 0;       // H
  int64_t kv_heads = 0;    // K
  double scale = 1;        // 1/√E
  struct In {
    Tensor q;              // (M, H·E)
    Tensor k;              // (M, K·E)
    Tensor v;              // (M, K·E)
    Tensor segment_start;  // i32 (M), non-decreasing, optional
  };
  struct Out {
    Tensor y;  // (M, H·E)
  };
  struct Saved {
    Tensor lse;  // (M, H) log-sum-exp of each row's scaled scores
  };
  OpPlan plan(const In&) const;
};

}  // namespace fairway
