// Scaled RMSNorm without weights: y = scale·x·r, r = (mean(x²) + eps)^(−½) over the last axis (spec §4.5, §6.2).
#pragma once

#include "ops/op.h"

namespace fairway {

inline constexpr double kRmsEps = 1.1920928955078125e-7;  // 2⁻²³; a larger one would shrink the small initial embeddings

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  static constexpr bool differentiable = true;
  double scale = 1;
  double eps = kRmsEps;
  template <class T>
  struct InOf {
    T x;  // (M, D)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, D)
  };
  template <class T>
  struct SavedOf {
    T rstd;  // (M) the r of each row
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.x = arg::activation};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  static constexpr SavedOf<Arg> kSaved{.rstd = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
