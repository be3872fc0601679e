#include "recipe/model_shape.h"

#include <algorithm>

namespace fairway {
namespace {

int64_t passes(const ModelRecipe& m, bool looped) {
  return m.layers + (looped && m.loop.count > 0 ? m.loop.count * (m.loop.end - m.loop.start + 1) : 0);
}

}  // namespace

int64_t ParamInfo::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::vector<ParamInfo> parameter_table(const ModelRecipe& m) {
  const int64_t V = m.vocab, D = m.dim, L = m.layers, H = m.heads, KE = m.kv_dim(), F = m.mlp_hidden;
  using enum ParamRole;
  std::vector<ParamInfo> table{
      {"embed.token", {V, D}, token},      {"bank.qo", {2 * L, D, D}, matrix},     {"bank.kv", {2 * L, KE, D}, matrix},
      {"bank.up", {L, F, D}, matrix},      {"bank.down", {L, D, F}, matrix},       {"block.attn_scale", {L, D}, scalar},
      {"block.mlp_scale", {L, D}, scalar}, {"block.resid_mix", {L, 2, D}, scalar}, {"block.q_gain", {L, H}, scalar},
  };
  const auto add = [&table](const char* name, std::vector<int64_t> shape, ParamRole role) {
    table.push_back({name, std::move(shape), role});
  };
  if (m.attn_gate == AttnGateKind::sparse) add("block.attn_gate", {L, H, kGateInputs}, scalar);
  if (m.skip != SkipKind::none && skip_count(m) > 0) {
    add("skip.weight", {skip_count(m), D}, scalar);
    if (m.skip == SkipKind::gated) add("skip.gate", {skip_count(m), D}, scalar);
  }
  if (m.smear == SmearKind::constant) add("smear.gate", {D}, scalar);
  if (m.smear == SmearKind::input) {
    add("smear.weight", {kGateInputs}, scalar);
    add("smear.lambda", {1}, scalar);
  }
  if (m.bigram.rows > 0) {
    add("bigram.table", {m.bigram.rows, m.bigram.dim}, token);
    add("bigram.proj", {D, m.bigram.dim}, scalar);
    add("bigram.scale", {}, scalar);
  }
  if (m.value_embed.dim > 0) {
    add("value_embed.table", {V, m.value_embed.dim}, token);
    add("value_embed.proj", {KE, m.value_embed.dim}, scalar);
    add("value_embed.scale", {}, scalar);
    add("value_embed.layer_scale", {static_cast<int64_t>(m.value_embed.layers.size())}, scalar);
  }
  if (m.lanes.start >= 0) {
    add("lane.post", {L, 2, 2}, scalar);
    add("lane.resid", {L, 2}, scalar);
  }
  return table;
}

std::vector<ParamInfo> parameter_table(const Recipe& recipe) {
  std::vector<ParamInfo> table = parameter_table(recipe.model);
  if (!recipe.optim.matrix.projections) return table;
  for (ParamInfo& info : table) {
    if (info.name == "bigram.proj" || info.name == "value_embed.proj") info.role = ParamRole::matrix;
  }
  return table;
}

int64_t parameter_count(const ModelRecipe& model) {
  int64_t total = 0;
  for (const ParamInfo& info : parameter_table(model)) total += info.count();
  return total;
}

LayerOrder layer_order(const ModelRecipe& m, bool looped) {
  LayerOrder order;
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    order.layers.push_back(layer);
    if (!looped || m.loop.count == 0 || layer != m.loop.end) continue;
    for (int64_t pass = 0; pass < m.loop.count; ++pass) {
      for (int64_t again = m.loop.start; again <= m.loop.end; ++again) order.layers.push_back(again);
    }
  }
  order.encoder = static_cast<int64_t>(order.layers.size()) / 2;
  return order;
}

// The decoder half is never the shorter one, so each encoder pass has its skip.
int64_t skip_count(const ModelRecipe& m) { return passes(m, true) / 2; }

double flops_per_token(const ModelRecipe& m, int64_t seq_len, bool looped) {
  const auto D = static_cast<double>(m.dim);
  const auto kv = static_cast<double>(m.kv_dim());
  const auto hidden = static_cast<double>(m.mlp_hidden);
  const auto layers = static_cast<double>(passes(m, looped));
  double multiplied = layers * (2 * D * D + 2 * D * kv + 2 * D * hidden) + D * static_cast<double>(m.vocab);
  if (m.bigram.rows > 0) multiplied += D * static_cast<double>(m.bigram.dim);
  if (m.value_embed.dim > 0) multiplied += kv * static_cast<double>(m.value_embed.dim);
  return 6 * multiplied + 7 * static_cast<double>(seq_len) * D * layers;
}

}  // namespace fairway
