// SLOT's offset δ of the last hidden state, one for each group of rows, fitted by AdamW with a gradient in closed form (scoring
// spec §2.4). Rows of a group, T of them, lie together. With u = E·h, z_j = cap·tanh((u_j + E·δ)/cap), p_j = softmax(z_j) and
// r = mean_j (p_j − onehot(y_j))·(1 − (z_j/cap)²) over the group's rows that have a target, dCE/dδ = Eᵀ·r: no product with h is
// needed. A step: m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², δ ← δ(1 − lr·wd) − lr·(m/(1−β₁ᵗ))/(√v/√(1−β₂ᵗ) + ε). A group without
// any target is left as it is. No group's bits depend on the others.
#pragma once

#include "ops/op.h"

namespace fairway {

struct OffsetFit {
  static constexpr std::string_view name = "offset_fit";
  static constexpr bool differentiable = false;
  static constexpr int64_t kParts =
      16;  // rows of a group are summed in so many parts, then the parts: the same for any threads
  double cap = 30, learning_rate = 0.003, weight_decay = 1e-8, beta1 = 0.9, beta2 = 0.999, eps = 1e-5;
  int64_t steps = 5;  // 0: only the shift of δ as it is; logits, targets and taken are then absent
  template <class T>
  struct InOf {
    T table;         // E (V, D)
    T offset, m, v;  // δ (G, D) and its moments, read and written
    T logits;        // u (G·T, V), optional
    T targets;       // y i32 (G·T), −1: the row is left out; optional
    T taken;         // i32 (1): steps that were taken before; optional
  };
  template <class T>
  struct OutOf {
    T shift;  // E·δ (G, V) after the last step
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.table = arg::matrix,
                                 .offset = arg::state,
                                 .m = arg::state,
                                 .v = arg::state,
                                 .logits = arg::activation.optional(),
                                 .targets = arg::index.optional(),
                                 .taken = arg::index.optional()};
  static constexpr OutOf<Arg> kOut{.shift = arg::activation};
  // Forward workspace, on the CPU: of each part a row of z, one of its gradient and their sum; then r (G, V) and Eᵀ·r (G, D).
  OpPlan plan(const In&) const;
};

}  // namespace fairway
