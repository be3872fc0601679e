// Embedding of tokens and of token pairs, and the smear gates (spec §4.1–4.3, A.2).
#include "model/blocks/blocks.h"

namespace fairway {

Var embed_tokens(BuildContext& c) {
  Tape& tape = c.tape();
  tape.scope("embedding");
  const DecodeInputs* decode = c.inputs().decode;
  const int64_t row_length = decode ? kEmbedWindow : c.inputs().row_length;
  const Var tokens = decode ? tape.input("window", decode->window) : c.tokens;
  Var e = tape.one(Embed{}, {tokens, c.param("embed.token")});
  if (c.model().bigram.rows > 0) {
    const ProjectedEmbed bigram{.index = ProjectedEmbed::Index::bigram, .row_length = row_length};
    e = tape.one(Add{},
                 {e, tape.one(bigram, {tokens, c.param("bigram.table"), c.param("bigram.proj"), c.param("bigram.scale")})});
  }
  if (c.model().smear == SmearKind::input) {
    const int32_t bos = c.model().smear_bos_mask ? static_cast<int32_t>(c.model().bos) : SmearGateInput::kNoToken;
    const SmearGateInput smear{.row_length = row_length, .bos = bos};
    e = tape.one(smear, {tokens, e, c.param("smear.weight"), c.param("smear.lambda")});
  }
  Var x = tape.one(RmsNorm{}, {e});
  if (c.model().smear == SmearKind::constant) x = tape.one(SmearGate{.row_length = row_length}, {x, c.param("smear.gate")});
  return decode ? tape.one(Embed{}, {tape.input("pick", decode->pick), x}) : x;
}

Var embed_values(BuildContext& c) {
  c.tape().scope("value_embed");
  return c.tape().one(ProjectedEmbed{.index = ProjectedEmbed::Index::token, .row_length = c.inputs().row_length},
                      {c.tokens, c.param("value_embed.table"), c.param("value_embed.proj"), c.param("value_embed.scale")});
}

}  // namespace fairway
