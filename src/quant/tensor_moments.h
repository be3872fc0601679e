// How strongly the loss depends on each tensor: the mean over tokens of the squared norm of the loss's gradient, which is the
// trace of the tensor's part of the Fisher matrix. With H the second moments of a matrix's inputs and r the share of each row,
// changing W by D costs ½·moment·Σ_i r_i·(D·H·Dᵀ)_ii/(rows·tr H) nats a token.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quant/hessians.h"

namespace fairway {

struct TensorMoment {
  double all = 0;
  std::vector<float> rows;  // r: of each row beside their mean, which is 1; empty: all alike
  // Of tables and their projections, whose inputs nobody observes: second moments of their rows' gradients, which stand for H.
  // Empty elsewhere.
  Hessian columns;
  // Of layers' matrices where outputs make up for each other (output_factor.h): G, up to a factor. Empty elsewhere.
  Hessian outputs;
  bool operator==(const TensorMoment&) const = default;
};
using TensorMoments = std::map<std::string, TensorMoment, std::less<>>;  // by TensorPlan::name(); empty: not measured

}  // namespace fairway
