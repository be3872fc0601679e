// Head of a block: mixed = mix[0]⊙x + mix[1]⊙x0, normed = scale·rms(mixed); both are kept (spec §4.5.1–2, §6.2, §6.7).
#pragma once

#include "ops/op.h"
#include "ops/rms_norm.h"

namespace fairway {

struct MixNorm {
  static constexpr std::string_view name = "mix_norm";
  static constexpr bool differentiable = true;
  double scale = 1;
  double eps = kRmsEps;
  template <class T>
  struct InOf {
    T x;    // (M, D)
    T x0;   // (M, D)
    T mix;  // (2, D)
  };
  template <class T>
  struct OutOf {
    T mixed;   // (M, D)
    T normed;  // (M, D)
  };
  template <class T>
  struct SavedOf {
    T rstd;  // (M)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.x = arg::activation, .x0 = arg::activation, .mix = arg::vector};
  static constexpr OutOf<Arg> kOut{.mixed = arg::activation, .normed = arg::activation};
  static constexpr SavedOf<Arg> kSaved{.rstd = arg::statistic};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
