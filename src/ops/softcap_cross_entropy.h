// Tied head and loss: ℓ = x·tableᵀ + addition, z = cap·tanh(ℓ/cap), nll = logsumexp(z) − z[target], loss = mean(nll) (spec
// §4.9, §6.1). dℓ_v = (softmax(z)_v − [v = target])·(1 − (z_v/cap)²)·dloss/M. Only loss carries a gradient, nll does not.
// With a distribution p expected of each row its p_v stand for [v = target]: nll = logsumexp(z) − Σ p_v·z_v, which is the KL
// divergence from p and p's entropy.
#pragma once

#include "ops/op.h"

namespace fairway {

struct SoftcapCrossEntropy {
  static constexpr std::string_view name = "softcap_cross_entropy";
  static constexpr bool differentiable = true;
  double cap = 30;
  bool logits_wanted =
      true;  // false: nobody but its own backward reads saved.logits, whose content is then the backend's business
  template <class T>
  struct InOf {
    T x;         // (M, D)
    T table;     // (V, D)
    T targets;   // i32 (M)
    T addition;  // (M, V) optional; its gradient is dℓ
    T expected;  // (M, V) optional: rows that sum to 1, in place of the targets
  };
  template <class T>
  struct OutOf {
    T loss;  // (1)
    T nll;   // (M) nats of each target
  };
  template <class T>
  struct SavedOf {
    T logits;  // (M, V) after the softcap
    T lse;     // (M)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.x = arg::activation,
                                 .table = arg::matrix,
                                 .targets = arg::index,
                                 .addition = arg::activation.optional().unread(),
                                 .expected = arg::statistic.optional().constant()};
  static constexpr OutOf<Arg> kOut{.loss = arg::statistic, .nll = arg::statistic.constant()};
  static constexpr SavedOf<Arg> kSaved{.logits = arg::activation, .lse = arg::statistic};
  OpPlan plan(const In&) const;  // backward workspace: dℓ (M, V)
};

}  // namespace fairway
