#include "interchange/found_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "interchange/published_names.h"
#include "model/shape/model_shape.h"

namespace fairway::interchange {
namespace {

constexpr int64_t kMostSlices = 512;

// A parameter of unknown size with this many slices: its names are all that is asked.
ParamInfo with_slices(ParamId id, int64_t slices) {
  return {.name = fairway::name_of(id), .shape = {slices, 1}, .role = row_of(id).role, .id = id};
}

int64_t extent(const std::optional<Extents>& shape, size_t axis) { return shape && axis < shape->size() ? (*shape)[axis] : 0; }

}  // namespace

std::optional<Extents> found_shape(const WeightSet& set, ParamId id) {
  const PublishedRow* row = published_row(id);
  for (const NameStyle style : kNameStyles) {
    int64_t stacked = 0;
    Extents slice;
    const bool two = style == NameStyle::per_layer && row != nullptr && !row->later_layer_name.empty();
    // Later matrices are numbered from 0 again, so twice as many slices as layers name them all.
    for (const TensorPlace& place : tensor_places(with_slices(id, two ? 2 * kMostSlices : kMostSlices), kMostSlices, style)) {
      const auto found = set.weights.find(place.name);
      if (found == set.weights.end()) continue;
      const bool whole = place.count == with_slices(id, kMostSlices).count();
      if (whole) {
        Extents shape = found->second.shape;
        if (style != NameStyle::fairway && row != nullptr && row->row && !shape.empty()) shape.erase(shape.begin());
        return shape;
      }
      ++stacked;
      slice = found->second.shape;
    }
    if (stacked == 0) continue;
    slice.insert(slice.begin(), stacked);
    return slice;
  }
  return std::nullopt;
}

std::vector<Setting> found_sizes(const WeightSet& set) {
  const auto of = [&](ParamId id) { return found_shape(set, id); };
  const auto token = of(ParamId::embed_token), qo = of(ParamId::qo), kv = of(ParamId::kv), up = of(ParamId::up),
             gain = of(ParamId::q_gain), bigram = of(ParamId::bigram_table), values = of(ParamId::value_embed_table);
  const int64_t dim = extent(token, 1), heads = extent(gain, 1), head = heads > 0 ? dim / heads : 0;
  std::vector<Setting> sizes;
  const auto add = [&](const char* key, int64_t size) {
    if (size > 0) sizes.push_back({key, std::to_string(size)});
  };
  add("model.vocab", extent(token, 0));
  add("model.dim", dim);
  add("model.layers", extent(qo, 0) / 2);
  add("model.heads", heads);
  add("model.kv_heads", head > 0 ? extent(kv, 1) / head : 0);
  add("model.mlp_hidden", extent(up, 1));
  add("model.bigram.rows", extent(bigram, 0));
  add("model.bigram.dim", extent(bigram, 1));
  add("model.value_embed.dim", extent(values, 1));
  const auto kind = [&](const char* key, std::string_view word) { sizes.push_back({key, "\"" + std::string(word) + "\""}); };
  if (of(ParamId::smear_gate)) kind("model.smear", name_of(SmearKind::constant));
  if (of(ParamId::smear_weight)) kind("model.smear", name_of(SmearKind::input));
  if (of(ParamId::skip_weight)) kind("model.skip", name_of(of(ParamId::skip_gate) ? SkipKind::gated : SkipKind::additive));
  if (of(ParamId::attn_gate)) kind("model.attn_gate", name_of(AttnGateKind::sparse));
  return sizes;
}

namespace {

// Parts that `recipe` has and the file does not.
std::vector<Setting> parts_left_out(const WeightSet& set, const ModelRecipe& m) {
  const auto absent = [&](ParamId id) { return !found_shape(set, id); };
  std::vector<Setting> out;
  if (m.smear != SmearKind::none && absent(ParamId::smear_gate) && absent(ParamId::smear_weight))
    out.push_back({"model.smear", "\"none\""});
  if (m.skip != SkipKind::none && absent(ParamId::skip_weight)) out.push_back({"model.skip", "\"none\""});
  if (m.attn_gate != AttnGateKind::none && absent(ParamId::attn_gate)) out.push_back({"model.attn_gate", "\"none\""});
  if (m.bigram.rows > 0 && absent(ParamId::bigram_table)) out.push_back({"model.bigram.rows", "0"});
  if (m.value_embed.dim > 0 && absent(ParamId::value_embed_table)) {
    out.push_back({"model.value_embed.dim", "0"});
    out.push_back({"model.value_embed.layers", "[]"});
  }
  return out;
}

bool goes(const Recipe& recipe) {
  try {
    validate(recipe, "");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// All of [0, end), those nearest to `wish` first.
std::vector<int64_t> nearest_first(int64_t wish, int64_t end) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < end; ++i) out.push_back(i);
  std::stable_sort(out.begin(), out.end(), [&](int64_t a, int64_t b) { return std::abs(a - wish) < std::abs(b - wish); });
  return out;
}

// Lanes as far from the end as near's, or where they go.
bool place_lanes(const ModelRecipe& near, bool lanes, Recipe& recipe) {
  ModelRecipe& m = recipe.model;
  m.lanes.start = lanes ? m.layers - 1 : -1;  // if they do not go there, they go nowhere
  if (!lanes || !goes(recipe)) return goes(recipe);
  const int64_t wish = near.lanes.start < 0 ? m.layers - m.layers / 4 : m.layers - (near.layers - near.lanes.start);
  for (const int64_t start : nearest_first(wish, m.layers))
    if (m.lanes.start = start; goes(recipe)) return true;
  return false;
}

// Loop and lanes that give as many skips as the file has: near's own where they do, else what is nearest to them.
void fit_order(int64_t skips, const ModelRecipe& near, bool lanes, Recipe& recipe) {
  ModelRecipe& m = recipe.model;
  const auto right = [&] { return m.skip == SkipKind::none || skip_count(m) == skips; };
  if (m.loop.end < m.layers && right() && place_lanes(near, lanes, recipe)) return;
  constexpr int64_t kMostPasses = 8;
  for (const int64_t count : nearest_first(near.loop.count, kMostPasses)) {
    const int64_t longest = count == 0 ? 1 : m.layers;
    for (int64_t size = 1; size <= longest; ++size) {
      m.loop.count = count, m.loop.start = 0, m.loop.end = size - 1;
      if (!right()) continue;
      for (const int64_t start : nearest_first(near.loop.start, longest - size + 1)) {
        m.loop.start = start, m.loop.end = start + size - 1;
        if (place_lanes(near, lanes, recipe)) return;
      }
    }
  }
}

}  // namespace

std::vector<Setting> settings_that_follow(const WeightSet& set, const ModelRecipe& near, const Recipe& sized) {
  std::vector<Setting> out = parts_left_out(set, sized.model);
  Recipe recipe = sized;
  for (const Setting& setting : out) apply_override(recipe, setting.key + "=" + setting.text);
  ModelRecipe& m = recipe.model;
  m.rope.dims = std::min(m.rope.dims, m.head_dim() / 2 * 2);
  if (m.xsa_first_layer >= m.layers) m.xsa_first_layer = std::max<int64_t>(0, m.layers - (near.layers - near.xsa_first_layer));
  const int64_t with_values = std::min(m.layers, extent(found_shape(set, ParamId::value_embed_layer_scale), 0));
  auto& layers = m.value_embed.layers;
  if (m.value_embed.dim > 0 &&
      (layers.empty() || static_cast<int64_t>(layers.size()) != with_values || layers.back() >= m.layers)) {
    layers.clear();
    for (int64_t layer = m.layers - with_values; layer < m.layers; ++layer) layers.push_back(layer);
  }
  fit_order(extent(found_shape(set, ParamId::skip_weight), 0), near, found_shape(set, ParamId::lane_post).has_value(), recipe);
  out.push_back({"model.rope.dims", std::to_string(m.rope.dims)});
  out.push_back({"model.xsa_first_layer", std::to_string(m.xsa_first_layer)});
  if (m.value_embed.dim > 0) out.push_back({"model.value_embed.layers", fmt::format("[{}]", fmt::join(layers, ", "))});
  out.push_back({"model.loop.start", std::to_string(m.loop.start)});
  out.push_back({"model.loop.end", std::to_string(m.loop.end)});
  out.push_back({"model.loop.count", std::to_string(m.loop.count)});
  out.push_back({"model.lanes.start", std::to_string(m.lanes.start)});
  return out;
}

}  // namespace fairway::interchange
