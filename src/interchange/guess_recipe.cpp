#include "interchange/guess_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "interchange/fit.h"
#include "interchange/found_sizes.h"

namespace fairway::interchange {
namespace {

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

// The settings that change `recipe`, which then has them, as flags of `import`.
std::string flags_of(const std::vector<Setting>& settings, Recipe& recipe) {
  std::string flags;
  for (const Setting& setting : settings) {
    const Recipe before = recipe;
    apply_override(recipe, setting.key + "=" + setting.text);
    if (recipe != before) flags += fmt::format(" --set '{}={}'", setting.key, setting.text);
  }
  return flags;
}

// The keys of a model that change none of its shapes, with their values.
std::string untold(const ModelRecipe& m) {
  std::string text = fmt::format("model.rope.dims = {}, model.xsa_first_layer = {}", m.rope.dims, m.xsa_first_layer);
  if (m.loop.count > 0) text += fmt::format(", model.loop = {} to {}, {} times more", m.loop.start, m.loop.end, m.loop.count);
  if (m.lanes.start >= 0) text += fmt::format(", model.lanes.start = {}", m.lanes.start);
  if (m.value_embed.dim > 0) text += fmt::format(", model.value_embed.layers = [{}]", fmt::join(m.value_embed.layers, ", "));
  return text;
}

[[noreturn]] void refuse_none(const WeightSet& set) {
  const BuiltinRecipe& nearest = nearest_recipe(set);
  const Recipe near = load_recipe(nearest.name);
  const std::vector<Setting> found = found_sizes(set);
  if (found.empty())
    throw InputError(set.name + ": no built-in recipe fits, and none of its tensors has a name that Fairway knows");
  std::string sizes;
  for (const Setting& size : found) sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", size.key, size.text);
  Recipe recipe = near;
  std::string flags = flags_of(found, recipe);
  flags += flags_of(settings_that_follow(set, near.model, recipe), recipe);
  throw InputError(
      fmt::format("{}: no built-in recipe has these sizes: {}. Give a recipe file, or --recipe {}{}. Shapes do not tell {}: "
                  "these are taken "
                  "from {} as far as they go with the sizes; set them where you know better",
                  set.name, sizes, nearest.name, flags, untold(recipe.model), nearest.name));
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
