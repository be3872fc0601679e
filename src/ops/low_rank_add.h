// Low-rank additions to a projection, other ones for each document (scoring spec §2.6). Rows of document d, T of them, lie
// together: y_d = base_d + gain⊙(low_d·B_dᵀ) with low_d = scale·x_d·A_dᵀ.
// Backward, with g = dy: dbase = g, dlow = (gain⊙g)·B, dB = diag(gain)·gᵀ·low, dA = scale·dlowᵀ·x, dx = scale·dlow·A,
// dgain_n = Σ_d Σ_r (gᵀ·low)_nr·B_nr.
#pragma once

#include "ops/op.h"

namespace fairway {

struct LowRankAdd {
  static constexpr std::string_view name = "low_rank_add";
  static constexpr bool differentiable = true;
  double scale = 1;
  template <class T>
  struct InOf {
    T base;  // (G·T, N) optional
    T x;     // (G·T, C)
    T a;     // (G, r, C)
    T b;     // (G, N, r)
    T gain;  // (N) optional: ones
  };
  template <class T>
  struct OutOf {
    T y;  // (G·T, N)
  };
  template <class T>
  struct SavedOf {
    T low;  // (G·T, r)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.base = arg::activation.optional().passes(),
                                 .x = arg::activation,
                                 .a = arg::matrix,
                                 .b = arg::matrix,
                                 .gain = arg::vector.optional()};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  static constexpr SavedOf<Arg> kSaved{.low = arg::activation};
  // Backward workspace, of one document: dlow (T, r), up to doubles; then gᵀ·low and diag(gain)·B (N, r).
  OpPlan plan(const In&) const;
};

}  // namespace fairway
