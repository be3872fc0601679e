// Golden cases: inputs, weights, losses and gradients of the reference models in float64, small sizes. A case file says in its
// metadata which model it is; it is run through the same model definition, programs and trainer as any recipe.
#pragma once

#include <string>
#include <vector>

#include "autograd/executor.h"
#include "golden/tolerances.h"
#include "model/safetensors.h"
#include "recipe/recipe.h"

namespace fairway::golden {

// Errors are relative; of a tensor in the 2-norm.
struct TensorError {
  std::string name;
  double error = 0, limit = 0;
  bool held() const { return error <= limit; }
};
// The one that comes nearest to its limit, or is farthest beyond it.
const TensorError& worst_of(const std::vector<TensorError>& errors);

struct CaseResult {
  double loss = 0, loss_expected = 0, loss_error = 0;
  std::vector<TensorError> gradients;
  double logits_error = 0, hidden_error = 0;
  Tolerances limits;
  bool held = false;
};

struct TrajectoryResult {
  std::vector<double> losses, gradient_norms;  // errors, step by step
  std::vector<TensorError> final_weights, averages;
  double worst_loss = 0, worst_grad_norm = 0;
  Tolerances limits;
  bool held = false;
};

bool is_trajectory(const Safetensors& file);
CaseResult run_case(const Safetensors& file, Executor& executor);
TrajectoryResult run_trajectory(const Safetensors& file, Executor& executor);

}  // namespace fairway::golden
