// The one definition of the model: every recipe's forward pass, recorded on a tape (spec §4, §5, A.1–A.4).
#pragma once

#include <string>

#include "autograd/tape.h"
#include "model/adapters.h"
#include "model/param_store.h"
#include "recipe/recipe.h"

namespace fairway {

// What changes during a run without changing a parameter: each combination is a program of its own, made before the clock
// starts.
struct ModelStage {
  bool looped = false;      // depth recurrence is on
  bool fake_quant = false;  // banks are seen through the quantizer's grid
  bool operator==(const ModelStage&) const = default;
};

// The embedding of a token looks back two tokens: at its predecessor (smear), whose bigram needs that one's predecessor.
inline constexpr int64_t kEmbedWindow = 3;

// What the decoding form needs besides: each run takes one new token of each of B rows, all at the same position, and attends
// to the keys and values that earlier runs left. The new token of row b is window[pick[b]].
struct DecodeInputs {
  Tensor window;      // i32 (B·kEmbedWindow): the last tokens of each row in order, then anything
  Tensor pick;        // i32 (B): kEmbedWindow·b + the new token's place in its row's window
  Tensor position;    // i32 (1)
  Spec keys, values;  // of each pass over a layer, as AttentionCached has them: state of the session
};

// Fixed memory that the program reads; filled before each run.
struct ModelInputs {
  Tensor tokens;           // i32 (M)
  Tensor targets;          // i32 (M), or (N) with head_rows
  Tensor expected;         // (M, V) optional: distributions in place of the targets
  Tensor head_rows;        // i32 (N), optional: rows that the head, and what only they need, runs on
  Tensor segment_start;    // i32 (M), only where documents are packed
  Tensor rope;             // (T, R)
  Tensor loss_gradient;    // (1); absent: forward only
  int64_t row_length = 0;  // T
  bool headless = false;   // the model ends before its head, at ModelOutputs::hidden
  const AdapterInputs* adapters = nullptr;
  const DecodeInputs* decode = nullptr;  // present: M = B, T = 1, and rope holds the row of the position alone
};

// The numbers a caller wants to find again in the program's values.
struct ModelOutputs {
  Var loss{};    // (1)
  Var nll{};     // (M)
  Var logits{};  // (M, V) after the softcap
  Var lse{};     // (M)
  Var hidden{};  // (M, D) normed: what the head reads
  Var table{};   // (V, D) of the head
  Var added{};   // (M, V) to the logits before the softcap, by an adapter of the head; absent without
};

// Observe points, in execution order: "layer<i>.attn_in", ".q", ".k" (as multiplied), ".attn_out", ".mlp_in", ".mlp_hidden",
// ".out" (hidden states; lanes: ".attn_lane", ".mlp_lane"), "final", "logits"; a looped layer is told once per pass.
ModelOutputs build_model(Tape& tape, const Recipe& recipe, const ParamStore& params, const ModelInputs& inputs,
                         ModelStage stage);

// Rotation angles for `positions` rows; the base is that of the training length at every length (spec §4.7, §16.2).
void fill_rope(const Recipe& recipe, const Tensor& rope);
Shape rope_shape(const Recipe& recipe, int64_t positions);

}  // namespace fairway
