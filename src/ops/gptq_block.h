// One block of columns of GPTQ (scoring spec §4.5 step 5). For each row and each column j of [begin, end) in order:
//   q = clamp(round_half_even(w_j/s), ±levels),  e = (w_j − s·q)/U_jj,  w_l −= e·U_jl for the block's columns l > j;
// then the columns after the block: W −= E·U[block, rest]. On a trellis the q of a column are those of the path through it
// (base/trellis.h) that minimises Σ (w_j/s − q)² over the rows from one start of it to the next. What bits cost does not count:
// it would pull all weights towards zero, by 2 to 6 % at three bits, in every layer alike, for 2 % less of the expected damage.
#pragma once

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
    T work;    // (R, C): the block's columns become the integers q, later ones receive the block's errors
    T factor;  // (C, C), U
    T scale;   // (R); a row whose scale is zero becomes zeros
    T error;   // (R, at least end − begin), written: e
    T loss;    // f64 (R), added to: Σ e² over the block, whose sum over all blocks is the row's D·H·Dᵀ
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.work = arg::state,
                                 .factor = arg::state,
                                 .scale = arg::state,
                                 .error = arg::state,
                                 .loss = arg::state};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
