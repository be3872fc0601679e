// Tied head and loss: ℓ = x·tableᵀ, z = cap·tanh(ℓ/cap), nll = logsumexp(z) − z[target], loss = mean(nll) (spec §4.9, §6.1).
// dℓ_v = (softmax(z)_v − [v = target])·(1 − (z_v/cap)²)·dloss/M. Only loss carries a gradient, nll does not.
#pragma once

#include "ops/op.h"

namespace fairway {

struct SoftcapCrossEntropy {
  static constexpr std::string_view name = "softcap_cross_entropy";
  static constexpr bool differentiable = true;
  double cap = 30;
  struct In {
    Tensor x;        // (M, D)
    Tensor table;    // (V, D)
    Tensor targets;  // i32 (M)
  };
  struct Out {
    Tensor loss;  // (1)
    Tensor nll;   // (M) nats of each target
  };
  struct Saved {
    Tensor logits;  // (M, V) after the softcap
    Tensor lse;     // (M)
  };
  OpPlan plan(const In&) const;  // backward workspace: dℓ (M, V)
};

}  // namespace fairway
