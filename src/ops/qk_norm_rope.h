// Per head: RMSNorm, rotation of the first R dims by position, gain on q (spec §4.6.3–5, §4.7, §6.6).
// Pairs are (j, j+R/2): out_j = x_j cosθ + x_{j+R/2} sinθ, out_{j+R/2} = −x_j sinθ + x_{j+R/2} cosθ.
#pragma once

#include "ops/op.h"
#include "ops/rms_norm.h"

namespace fairway {

struct QkNormRope {
  static constexpr std::string_view name = "qk_norm_rope";
  static constexpr bool differentiable = true;
  int64_t row_length = 0;  // T: position of row m is m mod T
  int64_t head_dim = 0;    // E
  double eps = kRmsEps;
  struct In {
    Tensor q;     // (M, H·E)
    Tensor k;     // (M, K·E)
    Tensor gain;  // (H)
    Tensor rope;  // (T, R): cosines of the R/2 angles, then their sines; never differentiated
  };
  struct Out {
    Tensor q;  // (M, H·E)
    Tensor k;  // (M, K·E)
  };
  struct Saved {
    Tensor rstd_q;  // (M, H)
    Tensor rstd_k;  // (M, K)
  };
  OpPlan plan(const In&) const;
};

}  // namespace fairway
