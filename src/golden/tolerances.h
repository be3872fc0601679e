// What counts as right: relative errors, of tensors in the 2-norm.
#pragma once

#include "autograd/executor.h"

namespace fairway::golden {

struct Tolerances {
  double loss = 0;        // of one pass
  double gradient = 0;    // of every tensor …
  double scalar = 0;      // … but for single numbers, which cancel
  double state = 0;       // logits and hidden states
  double step_loss = 0;   // along a trajectory, at every step
  double weights = 0;     // at its end …
  double average = 0;     // … and of their average
  double over_float = 0;  // gradients may be off by so many times what float costs the worst of them, where that is more
};

// The golden README's bounds; weights have more room because Muon amplifies rounding in directions with tiny gradients.
inline constexpr Tolerances kFloatTolerances{
    .loss = 1e-6, .gradient = 1e-4, .scalar = 5e-4, .state = 1e-4, .step_loss = 5e-4, .weights = 5e-3, .average = 5e-3};
// Activations and the matrices that products read have 8 bits. Two to three times what the reference gives when its values are
// rounded so (tests/golden): loss 6.7e-4, states 2.1e-2, gradients 5.4e-2, step losses 4.8e-3, weights 4.8e-2, averages 2.9e-3.
// Gradients of the pr1584 cases and a scale of pr1105 nearly cancel: bf16 costs them 0.23 and 0.55 where float costs 5.7e-6 and
// 1.4e-5, so what float costs a case, times the ratio of the two roundings, 2^16, is allowed too.
inline constexpr Tolerances kBf16Tolerances{.loss = 2e-3,
                                            .gradient = 1e-1,
                                            .scalar = 2e-1,
                                            .state = 5e-2,
                                            .step_loss = 1.5e-2,
                                            .weights = 1e-1,
                                            .average = 1e-2,
                                            .over_float = 65536};

constexpr const Tolerances& tolerances_of(Backend backend) {
  return backend == Backend::cuda ? kBf16Tolerances : kFloatTolerances;
}

}  // namespace fairway::golden
