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
  struct In {
    Tensor x;    // (M, D)
    Tensor x0;   // (M, D)
    Tensor mix;  // (2, D)
  };
  struct Out {
    Tensor mixed;   // (M, D)
    Tensor normed;  // (M, D)
  };
  struct Saved {
    Tensor rstd;  // (M)
  };
  OpPlan plan(const In&) const;
};

}  // namespace fairway
