// One block of columns of GPTQ (scoring spec §4.5 step 5). For each row and each column j of [begin, end) in order:
//   q = clamp(round_half_even(w_j/s), ±levels),  e = (w_j − s·q)/U_jj,  w_l −= e·U_jl for the block's columns l > j;
// then the columns after the block: W −= E·U[block, rest]. On a trellis the q of a column are those of the path through it
// (base/trellis.h) that minimises Σ (w_j/s − q)² over the rows from one start of it to the next. What bits cost does not count:
// it would pull all weights towards zero, by 2 to 6 % at three bits, in every layer alike, for 2 % less of the expected damage.
//
// With `outputs`, the second moments G = (VᵀV)⁻¹ of the loss's gradient by the weight's outputs, errors also make up for each
// other down a column (two-sided feedback; YAQA, arXiv 2505.22988). Row i aims at g_i = w_i − Σ_k<i d_k·V_ki instead of w_i,
// where d_k = (g_k − s_k·q_k)/V_kk; a path of the trellis minimises Σ d², and each of its states has aims of its own. What is
// spread to later columns stays e. `loss` then sums ((g − s·q)/U_jj)²; with each row's counted 1/V_ii² times that is
// tr(G·D·H·Dᵀ).
#pragma once

#include "base/trellis.h"
#include "ops/op.h"

namespace fairway {

struct GptqBlock {
  static constexpr std::string_view name = "gptq_block";
  static constexpr bool differentiable = false;
  int64_t begin = 0, end = 0;
  int32_t levels = 31;
  bool trellis = false;
  template <class T>
  struct InOf {
    T work;     // (R, C): the block's columns become the integers q, later ones receive the block's errors
    T factor;   // (C, C), U
    T scale;    // (R); a row whose scale is zero becomes zeros
    T error;    // (R, at least end − begin), written: e
    T loss;     // f64 (R), added to: Σ e² over the block, whose sum over all blocks is the row's D·H·Dᵀ
    T outputs;  // (S, S), optional: V; weights of S rows lie below each other
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.work = arg::state,
                                 .factor = arg::state,
                                 .scale = arg::state,
                                 .error = arg::state,
                                 .loss = arg::state,
                                 .outputs = arg::state.optional()};
  OpPlan plan(const In&) const;  // forward workspace with `outputs`: column_bytes() for each weight

  // What a weight of so many rows needs on its way down a column: the aim of every row and, by each state of the trellis, those
  // of the rows to its next start (twice, before a row and after it), its levels and where it came from.
  static constexpr size_t column_bytes(int64_t side) {
    return static_cast<size_t>(side) * sizeof(float) + kTrellisStates * kTrellisRows * (2 * sizeof(float) + 2);
  }
};

}  // namespace fairway
