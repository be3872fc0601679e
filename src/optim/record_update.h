// The updates of one bank as recorded calls, the same whether a process works alone or on a shard.
#pragma once

#include "autograd/tape.h"
#include "model/param_store.h"
#include "recipe/recipe.h"

namespace fairway {

struct UpdateInputs {
  Tensor scalars;
  Tensor clip;  // absent when the gradient is clipped already
};

struct AdamState {
  Tensor m, v;
};
void record_adamw(Tape& tape, const OptimRecipe& recipe, const ParamBank& bank, const Tensor& gradient, const AdamState& state,
                  const UpdateInputs& inputs);

// A float tensor rounded to bf16 where it lies.
void record_rounding(Tape& tape, Var tensor);

// Momentum and orthogonalisation of (n, R, C); returns the update O.
Var record_muon_update(Tape& tape, const OptimRecipe& recipe, const std::string& name, const Tensor& gradient,
                       const Tensor& momentum, const UpdateInputs& inputs);
void record_muon_apply(Tape& tape, const MatrixRecipe& rule, const std::string& name, const Tensor& value, Var update,
                       const UpdateInputs& inputs);

}  // namespace fairway
