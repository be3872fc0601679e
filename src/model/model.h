// The one definition of the model: every recipe's forward pass, recorded on a tape (spec §4, §5, A.1–A.4).
#pragma once

#include <string>

#include "autograd/tape.h"
#include "params/param_store.h"
#include "recipe/recipe.h"

namespace fairway {

// What changes during a run without changing a parameter: each combination is a program of its own, made before the clock
// starts.
struct ModelStage {
  bool looped = false;      // depth recurrence is on
  bool fake_quant = false;  // banks are seen through the quantizer's grid
  bool operator==(const ModelStage&) const = default;
};

// Fixed memory that the program reads; filled before each run.
struct ModelInputs {
  Tensor tokens;           // i32 (M)
  Tensor targets;          // i32 (M)
  Tensor segment_start;    // i32 (M), only where documents are packed
  Tensor rope;             // (T, R)
  Tensor loss_gradient;    // (1); absent: forward only
  int64_t row_length = 0;  // T
};

// The numbers a caller wants to find again in the program's values.
struct ModelOutputs {
  Var loss;    // (1)
  Var nll;     // (M)
  Var logits;  // (M, V) after the softcap
};

// Observe points, told in execution order: "layer<i>.attn_in", ".attn_out", ".mlp_in", ".mlp_hidden", ".out" (sequential blocks
// only, spec's hidden states), "final", "logits"; a looped layer is told once per pass.
ModelOutputs build_model(Tape& tape, const Recipe& recipe, const ParamStore& params, const ModelInputs& inputs,
                         ModelStage stage);

// Rotation angles for `positions` rows; the base is that of the training length at every length (spec §4.7, §16.2).
void fill_rope(const Recipe& recipe, const Tensor& rope);
Shape rope_shape(const Recipe& recipe, int64_t positions);

}  // namespace fairway
