// Embedding of tokens and of token pairs, and the smear gates (spec §4.1–4.3, A.2).
#include "model/blocks/blocks.h"

namespace fairway {

Var embed_tokens(BuildContext& c) {
  Tape& tape = c.tape();
  tape.scope("embedding");
  const DecodeInputs* decode = c.inputs().decode;
  const int64_t row_length = decode ? kEmbedWindow : c.inputs().row_length;
  const Var tokens = decode ? tape.input("window", decode->window) : c.tokens;
  Var e = tape.one(Embed{}, {tokens, c.param(ParamId::embed_token)});
  if (c.model().bigram.rows > 0) {
    const ProjectedEmbed bigram{.index = ProjectedEmbed::Index::bigram, .row_length = row_length};
    e = tape.one(Add{}, {e, tape.one(bigram, {tokens, c.param(ParamId::bigram_table), c.param(ParamId::bigram_proj),
                                              c.param(ParamId::bigram_scale)})});
  }
  if (c.model().smear == SmearKind::input) {
    const int32_t bos = c.model().smear_bos_mask ? static_cast<int32_t>(c.model().bos) : SmearGateInput::kNoToken;
    const SmearGateInput smear{.row_length = row_length, .bos = bos};
    e = tape.one(smear, {tokens, e, c.param(ParamId::smear_weight), c.param(ParamId::smear_lambda)});
  }
  Var x = tape.one(RmsNorm{}, {e});
  if (c.model().smear == SmearKind::constant)
    x = tape.one(SmearGate{.row_length = row_length}, {x, c.param(ParamId::smear_gate)});
  return decode ? tape.one(Embed{}, {tape.input("pick", decode->pick), x}) : x;
}

Var embed_values(BuildContext& c) {
  c.tape().scope("value_embed");
  return c.tape().one(
      ProjectedEmbed{.index = ProjectedEmbed::Index::token, .row_length = c.inputs().row_length},
      {c.tokens, c.param(ParamId::value_embed_table), c.param(ParamId::value_embed_proj), c.param(ParamId::value_embed_scale)});
}

}  // namespace fairway
