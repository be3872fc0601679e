// The two forms of a block: sequential (spec §4.5) and on parallel lanes (§5.2).
#include "model/blocks/blocks.h"

namespace fairway {
namespace {

// x + mlp_scale⊙MLP(normed); without x just the second term.
Var mlp_into(BuildContext& c, int64_t layer, Var x, Var normed) {
  Tape& tape = c.tape();
  tape.observe(point_name(InputPoint::mlp_in, layer), normed);
  const Var scale = c.param(ParamId::mlp_scale, layer);
  const auto mlp = tape.call(Mlp{}, {x, normed, c.matrix(ParamId::up, layer), c.matrix(ParamId::down, layer), scale});
  tape.observe(point_name(InputPoint::mlp_hidden, layer), mlp.saved.post);
  return c.adapted(mlp.out.y, normed, scale, AdapterSite::mlp);
}

Var attention_into(BuildContext& c, int64_t layer, Var x, Var normed) {
  const Var heads = c.narrow(attention_heads(c, layer, normed)), scale = c.param(ParamId::attn_scale, layer);
  const Var out = c.tape().one(ProjectResidual{}, {c.narrow(x), heads, c.matrix(ParamId::qo, c.model().layers + layer), scale});
  return c.adapted(out, c.has_adapter(AdapterSite::o) ? c.narrow(normed) : Var{}, scale, AdapterSite::o);
}

}  // namespace

Var sequential_block(BuildContext& c, int64_t layer, Var x) {
  Tape& tape = c.tape();
  tape.scope("block" + std::to_string(layer));
  const double scale = c.layer_scale(layer);
  const auto head = tape.call(MixNorm{.scale = scale}, {x, c.x0, c.param(ParamId::resid_mix, layer)});
  const Var middle = attention_into(c, layer, head.out.mixed, head.out.normed);  // the residual carried on is the mixed stream
  const Var normed = tape.one(RmsNorm{.scale = scale}, {middle});
  const Var out = mlp_into(c, layer, middle, normed);
  tape.observe("layer" + std::to_string(layer) + ".out", out);
  return out;
}

Lanes parallel_block(BuildContext& c, int64_t layer, Lanes lanes) {
  Tape& tape = c.tape();
  tape.scope("block" + std::to_string(layer));
  const double scale = c.layer_scale(layer);
  const auto head = tape.call(MixNorm{.scale = scale}, {lanes.attn, c.x0, c.param(ParamId::resid_mix, layer)});
  const Var attention = attention_into(c, layer, {}, head.out.normed);  // lanes carry themselves, not the mixed stream
  lanes = {c.narrow(lanes.attn), c.narrow(lanes.mlp)};
  const Var normed = tape.one(RmsNorm{.scale = scale}, {lanes.mlp});
  const Var mlp = mlp_into(c, layer, {}, normed);
  const auto mixed = tape.call(LaneMix{}, {lanes.attn, lanes.mlp, attention, mlp, c.param(ParamId::lane_resid, layer),
                                           c.param(ParamId::lane_post, layer)});
  tape.observe("layer" + std::to_string(layer) + ".attn_lane", mixed.out.lane0);
  tape.observe("layer" + std::to_string(layer) + ".mlp_lane", mixed.out.lane1);
  return {mixed.out.lane0, mixed.out.lane1};
}

Var merge_lanes(BuildContext& c, Lanes lanes) {
  c.tape().scope("merge");
  return c.tape().one(LaneMerge{}, {lanes.attn, lanes.mlp});
}

Var join_skip(BuildContext& c, int64_t decoder_position, Var x, Var skip) {
  c.tape().scope("skip" + std::to_string(decoder_position));
  const Var gate = c.model().skip == SkipKind::gated ? c.param(ParamId::skip_gate, decoder_position) : Var{};
  return c.tape().one(Skip{}, {x, skip, c.param(ParamId::skip_weight, decoder_position), gate});
}

}  // namespace fairway
