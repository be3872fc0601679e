// H += XᵀX, the second moments of a layer's inputs that GPTQ weighs its errors with (scoring spec §4.6). H is f64: products are
// f32 over some kRowsAtOnce rows, then added in double, so that many batches do not wear the sum down.
#pragma once

#include "ops/op.h"

namespace fairway {

struct HessianAccumulate {
  static constexpr std::string_view name = "hessian_accumulate";
  static constexpr bool differentiable = false;
  static constexpr int64_t kRowsAtOnce = 1024;
  static constexpr int64_t kBlock = 128;  // rows of H at a time
  template <class T>
  struct InOf {
    T hessian;  // f64 (C, C); its lower triangle (diagonal included) is read and written, the rest is left alone
    T rows;     // (N, C)
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.hessian = arg::state, .rows = arg::activation};
  OpPlan plan(const In&) const;  // forward workspace: kBlock·C elements
};

}  // namespace fairway
