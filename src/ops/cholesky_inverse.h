// The upper triangle U with UᵀU = (A + damping·I)⁻¹ that GPTQ spreads rounding errors with (scoring spec §4.5 step 4), in
// double.
#pragma once

#include "ops/op.h"

namespace fairway {

struct CholeskyInverse {
  static constexpr std::string_view name = "cholesky_inverse";
  static constexpr bool differentiable = false;
  double damping = 0;
  template <class T>
  struct InOf {
    T matrix;  // f64 (C, C), symmetric: only the lower triangle is read
    T factor;  // (C, C), written: U with zeros below its diagonal; all zero when the matrix is not positive definite
    T status;  // f64 (1), written: 1, or 0 when the matrix is not positive definite
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.matrix = arg::state, .factor = arg::state, .status = arg::state};
  OpPlan plan(const In&) const;  // forward workspace: 2·C² doubles
};

}  // namespace fairway
