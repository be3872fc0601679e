// The pieces a model is built from, one file each.
#pragma once

#include <vector>

#include "model/build_context.h"

namespace fairway {

Var embed_tokens(BuildContext&);                                // tokens → x0: embedding, bigram hash, smear gate, first norm
Var embed_values(BuildContext&);                                // the shared value embedding, scaled
Var attention_heads(BuildContext&, int64_t layer, Var normed);  // normed block input → concatenated heads, before W_O
Var sequential_block(BuildContext&, int64_t layer, Var x);
struct Lanes {
  Var attn, mlp;  // lane 0 carries the attention's residual, lane 1 the MLP's
};
Lanes parallel_block(BuildContext&, int64_t layer, Lanes lanes);
Var merge_lanes(BuildContext&, Lanes lanes);
Var join_skip(BuildContext&, int64_t decoder_position, Var x, Var skip);

}  // namespace fairway
