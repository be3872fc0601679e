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
  template <class T>
  struct InOf {
    T q;     // (M, H·E)
    T k;     // (M, K·E)
    T gain;  // (H)
    T rope;  // (T, R): cosines of the R/2 angles, then their sines; never differentiated
  };
  template <class T>
  struct OutOf {
    T q;  // (M, H·E)
    T k;  // (M, K·E)
  };
  template <class T>
  struct SavedOf {
    T rstd_q;  // (M, H)
    T rstd_k;  // (M, K)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{
      .q = arg::activation, .k = arg::activation, .gain = arg::vector, .rope = arg::vector.constant()};
  static constexpr OutOf<Arg> kOut{.q = arg::activation, .k = arg::activation};
  static constexpr SavedOf<Arg> kSaved{.rstd_q = arg::statistic, .rstd_k = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
