// The next token of every row, drawn from softmax(logits/temperature) with a number that the caller chose before (scoring spec
// §4.7), and the inputs of a decoding model made ready for it: so many tokens follow each other without the host.
#pragma once

#include "ops/op.h"

namespace fairway {

struct DrawTokens {
  static constexpr std::string_view name = "draw_tokens";
  static constexpr bool differentiable = false;
  double temperature = 1;  // 0: always the likeliest, of equal ones the first
  double cap =
      0;  // where a device keeps logits in halves they are those before the softcap (ops/cuda/softcap_cross_entropy.cu)
  template <class T>
  struct InOf {
    T logits;    // (B, V) of the tokens at `position`
    T chances;   // f64 (B, T), each in [0, 1): element t draws token t
    T text;      // i32 (B, T): token position + 1 is written; at the last position nothing but `position` changes
    T position;  // i32 (1), becomes position + 1
    T window;    // i32 (B·W): the last W tokens of each row, as DecodeInputs has them
    T pick;      // i32 (B), written: W·b + the new token's place in its row's window
    T tokens;    // i32 (B), written: the new tokens
    T rope;      // (T, R), angles of every position
    T angles;    // (1, R), written: those of position + 1
  };
  using In = InOf<Tensor>;
  using Out = None;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.logits = arg::activation,
                                 .chances = arg::state,
                                 .text = arg::index,
                                 .position = arg::index,
                                 .window = arg::index,
                                 .pick = arg::index,
                                 .tokens = arg::index,
                                 .rope = arg::vector,
                                 .angles = arg::vector};
  OpPlan plan(const In&) const;  // forward workspace: B·V doubles
};

}  // namespace fairway
