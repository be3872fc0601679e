#include "model/model.h"

#include <cmath>

#include "model/blocks/blocks.h"

namespace fairway {
namespace {

// Layers in their order, with U-Net skips from the first half to the second and lanes at the end (spec §4.4, §5).
Var run_layers(BuildContext& c, bool looped) {
  const ModelRecipe& m = c.model();
  const LayerOrder order = layer_order(m, looped);
  std::vector<Var> skips;
  Var x = c.x0;
  Lanes lanes;
  for (size_t pass = 0; pass < order.layers.size(); ++pass) {
    const int64_t layer = order.layers[pass], decoder_position = static_cast<int64_t>(pass) - order.encoder;
    const bool parallel = m.lanes.start >= 0 && layer >= m.lanes.start;
    if (parallel && !lanes.attn) lanes = {x, x};
    if (decoder_position >= 0 && !skips.empty()) {
      Var& target = parallel ? lanes.attn : x;  // the MLP lane never takes a skip
      target = join_skip(c, decoder_position, target, skips.back());
      skips.pop_back();
    }
    c.begin_pass(static_cast<int64_t>(pass), pass + 1 == order.layers.size());
    if (parallel) {
      lanes = parallel_block(c, layer, lanes);
    } else {
      x = sequential_block(c, layer, x);
      if (decoder_position < 0 && m.skip != SkipKind::none) skips.push_back(x);
    }
  }
  return lanes.attn ? merge_lanes(c, lanes) : x;
}

}  // namespace

ModelOutputs build_model(Tape& tape, const Recipe& recipe, const ParamStore& params, const ModelInputs& inputs,
                         ModelStage stage) {
  BuildContext c(tape, recipe, params, inputs, stage);
  c.x0 = embed_tokens(c);
  if (recipe.model.value_embed.dim > 0) c.value_embed = embed_values(c);
  const Var x = run_layers(c, stage.looped);
  tape.scope("head");
  const Var final_norm = tape.one(RmsNorm{}, {x});
  tape.observe(point_name(InputPoint::head_in, 0), final_norm);
  const Var table = c.param(ParamId::embed_token);
  if (inputs.headless) return {.hidden = final_norm, .table = table};
  const Var added = c.adapted({}, final_norm, {}, AdapterSite::head);
  const auto head =
      tape.call(SoftcapCrossEntropy{.cap = recipe.model.softcap},
                {final_norm, table, c.targets, added, inputs.expected ? tape.input("expected", inputs.expected) : Var{}});
  tape.observe("logits", head.saved.logits);
  tape.keep(head.out.loss);
  tape.keep(head.out.nll);
  return {.loss = head.out.loss,
          .nll = head.out.nll,
          .logits = head.saved.logits,
          .lse = head.saved.lse,
          .hidden = final_norm,
          .table = table,
          .added = added};
}

Shape rope_shape(const Recipe& recipe, int64_t positions) { return {positions, recipe.model.rope.dims}; }

void fill_rope(const Recipe& recipe, const Tensor& rope) {
  const RopeRecipe& r = recipe.model.rope;
  const auto dims = static_cast<double>(r.dims);
  double base = r.base;
  if (recipe.data.seq_len > r.reference_length && r.dims > 2) {
    base *= std::pow(static_cast<double>(recipe.data.seq_len) / static_cast<double>(r.reference_length), dims / (dims - 2));
  }
  const int64_t half = r.dims / 2;
  const auto store = [&](int64_t at, double value) {
    if (rope.spec.dtype == DType::f64) {
      rope.as<double>()[at] = value;
    } else {
      rope.as<float>()[at] = static_cast<float>(value);
    }
  };
  for (int64_t position = 0; position < rope.dim(0); ++position) {
    for (int64_t j = 0; j < half; ++j) {
      const double angle = static_cast<double>(position) * std::pow(base, -2.0 * static_cast<double>(j) / dims);
      store(position * r.dims + j, std::cos(angle));
      store(position * r.dims + half + j, std::sin(angle));
    }
  }
}

}  // namespace fairway
