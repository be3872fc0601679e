// Orthogonalises each matrix of a bank (spec §8.1.4–6, §8.2, §8.3): X = U/(‖U‖_F + 1e-7), transposed when it has more rows than
// columns; each iteration A = XXᵀ, X ← aX + (bA + cA²)X; transposed back.
#pragma once

#include <array>

#include "ops/op.h"

namespace fairway {

struct NewtonSchulz {
  static constexpr std::string_view name = "newton_schulz";
  static constexpr bool differentiable = false;
  static constexpr int kMaxSteps = 8;
  std::array<std::array<double, 3>, kMaxSteps> coefficients{};  // (a, b, c) of each iteration
  int32_t steps = 0;
  bool aol = false;                // before the iterations: row i divided by √Σ_j |XXᵀ|_ij + 1e-7
  bool post_norm_rows = false;     // after them, before transposing back: rows of X divided by their norm + 1e-7
  bool post_norm_columns = false;  // then its columns
  template <class T>
  struct InOf {
    T u;  // (n, R, C)
  };
  template <class T>
  struct OutOf {
    T o;  // (n, R, C)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.u = arg::update};
  static constexpr OutOf<Arg> kOut{.o = arg::update};
  OpPlan plan(const In&) const;  // forward workspace: n·(2·s·l + 2·s·s) elements, s = min(R, C), l = max(R, C)
};

// Named coefficient sets: "ns5", "polar5" and "turbo4" (which also sets aol and both norms after the iterations).
NewtonSchulz newton_schulz_rule(std::string_view set);

}  // namespace fairway
