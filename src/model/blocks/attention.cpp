// Attention of one layer up to its output projection (spec §4.6, A.3).
#include <algorithm>
#include <cmath>

#include "model/blocks/blocks.h"

namespace fairway {
namespace {

// Over the row's own earlier tokens, or over what earlier runs left in the pass's cache.
Var attend(BuildContext& c, Var q, Var k, Var v, bool exclusive, Var logit) {
  const ModelRecipe& m = c.model();
  const double scale = 1 / std::sqrt(static_cast<double>(m.head_dim()));
  if (const DecodeInputs* decode = c.inputs().decode) {
    const Var y = c.tape().one(AttentionCached{.heads = m.heads, .kv_heads = m.kv_heads, .scale = scale},
                               {q, k, v, c.tape().state("keys", decode->keys), c.tape().state("values", decode->values),
                                c.tape().input("position", decode->position)});
    if (!exclusive && !logit) return y;
    return c.tape().one(HeadOutput{.heads = m.heads, .kv_heads = m.kv_heads}, {y, exclusive ? v : Var{}, logit});
  }
  const Attention attention{
      .row_length = c.inputs().row_length, .heads = m.heads, .kv_heads = m.kv_heads, .scale = scale, .exclusive = exclusive};
  return c.tape().one(attention, {q, k, v, c.segment_start, logit, c.segment_tiles});
}

}  // namespace

Var attention_heads(BuildContext& c, int64_t layer, Var normed) {
  const ModelRecipe& m = c.model();
  Tape& tape = c.tape();
  const std::string name = "layer" + std::to_string(layer);
  tape.observe(point_name(InputPoint::attn_in, layer), normed);
  const bool gated = m.attn_gate == AttnGateKind::sparse;
  const Var logit = gated ? tape.one(GateLogits{}, {normed, c.param(ParamId::attn_gate, layer)}) : Var{};
  const auto qkv = tape.call(QkvProject{}, {normed, c.matrix(ParamId::qo, layer), c.matrix(ParamId::kv, layer),
                                            c.matrix(ParamId::kv, m.layers + layer)});
  const Var q = c.adapted(qkv.out.q, normed, {}, AdapterSite::q), k = c.adapted(qkv.out.k, normed, {}, AdapterSite::k);
  Var v = c.adapted(qkv.out.v, normed, {}, AdapterSite::v);
  const auto& with_values = m.value_embed.layers;
  if (const auto at = std::find(with_values.begin(), with_values.end(), layer);
      m.value_embed.dim > 0 && at != with_values.end()) {
    v = tape.one(ValueMix{}, {v, c.value_embed, c.param(ParamId::value_embed_layer_scale, at - with_values.begin())});
  }
  const QkNormRope norm{.row_length = c.inputs().row_length, .head_dim = m.head_dim()};
  const auto qk = tape.call(norm, {q, k, c.param(ParamId::q_gain, layer), c.rope});
  tape.observe(name + ".q", qk.out.q);
  tape.observe(name + ".k", qk.out.k);
  const bool exclusive = m.xsa_first_layer >= 0 && layer >= m.xsa_first_layer;
  const Var z = attend(c, qk.out.q, qk.out.k, v, exclusive, logit);
  tape.observe(point_name(InputPoint::attn_out, layer), z);
  return z;
}

}  // namespace fairway
