#include "model/shape/model_shape.h"

#include "base/error.h"

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

const ParamRow& ParamInfo::row() const {
  FAIRWAY_ASSERT(id, "'" + name + "' is no parameter of a model");
  return row_of(*id);
}

std::vector<ParamInfo> parameter_table(const ModelRecipe& model) {
  std::vector<ParamInfo> table;
  for (size_t i = 0; i < kParamCount; ++i) {
    const ParamRow& row = row_of(static_cast<ParamId>(i));
    if (auto shape = row.shape(model)) table.push_back({std::string(row.name), std::move(*shape), row.role, row.id});
  }
  return table;
}

std::vector<ParamInfo> parameter_table(const Recipe& recipe) {
  std::vector<ParamInfo> table = parameter_table(recipe.model);
  if (!recipe.optim.matrix.projections) return table;
  for (ParamInfo& info : table) {
    if (info.row().projection) info.role = ParamRole::matrix;
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
