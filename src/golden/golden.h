// Golden cases: inputs, weights, losses and gradients of the reference models in float64, small sizes. A case file says in its
// metadata which model it is; it is run through the same model definition, programs and trainer as any recipe.
#pragma once

#include <string>

#include "autograd/executor.h"
#include "params/safetensors.h"
#include "recipe/recipe.h"

namespace fairway::golden {

struct CaseResult {
  double loss = 0, loss_expected = 0, loss_error = 0;  // errors are relative
  double worst_grad = 0;                               // in the 2-norm of a tensor, scaled so that the limit is 1e-4
  std::string worst_grad_name;
  double logits_error = 0, hidden_error = 0;
  bool held = false;
};

struct TrajectoryResult {
  int64_t steps = 0;
  double worst_loss = 0, worst_grad_norm = 0, worst_final = 0, worst_ema = 0;
  std::string worst_final_name;
  bool held = false;
};

bool is_trajectory(const Safetensors& file);
Recipe recipe_of(const Safetensors& file, const std::string& prefix);  // from metadata and the tensors that are there
CaseResult run_case(const Safetensors& file, Executor& executor);
TrajectoryResult run_trajectory(const Safetensors& file, Executor& executor);

}  // namespace fairway::golden
