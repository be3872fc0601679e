#include "interchange/guess_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "interchange/fit.h"

namespace fairway::interchange {
namespace {

constexpr int64_t kMostSlices = 512;

// A parameter of unknown size with this many slices: its names are all that is asked.
ParamInfo with_slices(ParamId id, int64_t slices) {
  return {.name = fairway::name_of(id), .shape = {slices, 1}, .role = row_of(id).role, .id = id};
}

// The shape of the whole parameter as the file has it, a bank's matrices stacked; absent where none of it is there.
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

struct Size {
  std::string key;   // of a recipe
  std::string text;  // its value there
};

int64_t extent(const std::optional<Extents>& shape, size_t axis) { return shape && axis < shape->size() ? (*shape)[axis] : 0; }

// Sizes that shapes tell. Those that cannot be told apart from others are left out.
std::vector<Size> found_sizes(const WeightSet& set) {
  const auto of = [&](ParamId id) { return found_shape(set, id); };
  const auto token = of(ParamId::embed_token), qo = of(ParamId::qo), kv = of(ParamId::kv), up = of(ParamId::up),
             gain = of(ParamId::q_gain), bigram = of(ParamId::bigram_table), values = of(ParamId::value_embed_table);
  const int64_t dim = extent(token, 1), heads = extent(gain, 1), head = heads > 0 ? dim / heads : 0;
  std::vector<Size> sizes;
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

std::set<ParamId> ids_of(const ModelRecipe& model) {
  std::set<ParamId> ids;
  for (const ParamInfo& info : parameter_table(model)) ids.insert(*info.id);
  return ids;
}

// The recipe with the most parameters of the file and the fewest others.
const BuiltinRecipe& nearest_recipe(const WeightSet& set) {
  std::set<ParamId> found;
  for (size_t i = 0; i < kParamCount; ++i)
    if (found_shape(set, static_cast<ParamId>(i))) found.insert(static_cast<ParamId>(i));
  const auto distance = [&](const BuiltinRecipe& builtin) {
    const std::set<ParamId> ids = ids_of(load_recipe(builtin.name).model);
    std::vector<ParamId> differ;
    std::set_symmetric_difference(ids.begin(), ids.end(), found.begin(), found.end(), std::back_inserter(differ));
    return differ.size();
  };
  const auto all = builtin_recipes();
  return *std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
}

[[noreturn]] void refuse_none(const WeightSet& set) {
  const BuiltinRecipe& nearest = nearest_recipe(set);
  const Recipe recipe = load_recipe(nearest.name);
  std::string sizes, flags;
  for (const Size& size : found_sizes(set)) {
    sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", size.key, size.text);
    Recipe changed = recipe;
    apply_override(changed, size.key + "=" + size.text);
    if (changed != recipe) flags += fmt::format(" --set '{}={}'", size.key, size.text);
  }
  if (sizes.empty())
    throw InputError(set.name + ": no built-in recipe fits, and none of its tensors has a name that Fairway knows");
  throw InputError(fmt::format(
      "{}: no built-in recipe has these sizes: {}. Give a recipe file, or --recipe {}{} and what shapes do not tell "
      "(lanes, loops, layers of the value embedding)",
      set.name, sizes, nearest.name, flags));
}

// A constant that only one lineage's files have, where that recipe is among those that fit.
std::optional<size_t> told_by_constant(const WeightSet& set, const std::vector<GuessedRecipe>& fitting) {
  for (const PublishedConstant& constant : kPublishedConstants) {
    if (!set.weights.contains(std::string(constant.name))) continue;
    for (size_t i = 0; i < fitting.size(); ++i)
      if (fitting[i].name == constant.recipe) return i;
  }
  return std::nullopt;
}

}  // namespace

GuessedRecipe guess_recipe(const WeightSet& set, const std::vector<std::string>& overrides) {
  std::vector<GuessedRecipe> fitting;
  std::optional<std::string> bad_override;
  size_t tried = 0;
  for (const BuiltinRecipe& builtin : builtin_recipes()) {
    try {
      Recipe recipe = load_recipe(builtin.name, overrides);
      ++tried;
      if (fit_of(set, recipe.model).whole()) fitting.push_back({std::string(builtin.name), "", std::move(recipe)});
    } catch (const InputError& error) {  // an override that this recipe cannot have
      bad_override = error.what();
    }
  }
  if (tried == 0 && bad_override) throw InputError(*bad_override);
  if (fitting.empty()) refuse_none(set);
  std::vector<std::string> names;
  for (const GuessedRecipe& guess : fitting) names.push_back(guess.name);
  const size_t tensors = set.weights.size();
  if (fitting.size() == 1) {
    fitting[0].why = fmt::format("the only built-in recipe whose shapes are those of all {} tensors", tensors);
    return fitting[0];
  }
  if (const std::optional<size_t> told = told_by_constant(set, fitting)) {
    fitting[*told].why = fmt::format("{} have these shapes, and only files of {} have {}", fmt::join(names, " and "),
                                     names[*told], kPublishedConstants[0].name);
    return fitting[*told];
  }
  for (const GuessedRecipe& guess : fitting)
    if (guess.recipe.model != fitting[0].recipe.model)
      throw InputError(
          fmt::format("{}: the built-in recipes {} have these shapes and are different models; say which with --recipe",
                      set.name, fmt::join(names, ", ")));
  fitting[0].why =
      fmt::format("{} have these shapes and the same model; they differ in training and scoring", fmt::join(names, " and "));
  return fitting[0];
}

}  // namespace fairway::interchange
