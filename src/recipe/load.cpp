// Where a recipe comes from: the built-in texts, a file, the command line.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest_word.h"
#include "base/sha256.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

constexpr size_t kMaxRecipeBytes = size_t{1} << 20;

std::string read_recipe_file(const std::string& path) {
  if (InputFile(path).size() > kMaxRecipeBytes)
    throw InputError(fmt::format("{}: longer than {} bytes; expected a TOML recipe", path, kMaxRecipeBytes));
  return read_file(path, kMaxRecipeBytes);
}

struct Layer {
  std::string text, source;
  std::string chain;  // how it is reached, for errors; empty for the recipe that was asked for
};

std::string chain_text(const std::vector<std::string>& chain) {
  return chain.size() < 2 ? "" : fmt::format(" ({})", fmt::join(chain, " extends "));
}

[[noreturn]] void refuse_name(const std::vector<std::string>& chain) {
  std::vector<std::string> names;
  for (const BuiltinRecipe& recipe : builtin_recipes()) names.emplace_back(recipe.name);
  throw InputError(
      fmt::format("recipe \"{}\": neither a file nor a built-in recipe{}; the nearest built-in one is \"{}\" (all: {})",
                  chain.back().substr(0, 200), chain_text(chain), nearest_word(chain.back(), names), fmt::join(names, ", ")));
}

// The recipe itself; `chain` ends with its name, which the one before it in the chain extends.
Layer read_layer(const std::vector<std::string>& chain) {
  const std::string& name = chain.back();
  for (const BuiltinRecipe& builtin : builtin_recipes())
    if (builtin.name == name) return {std::string(builtin.text), fmt::format("built-in recipe {}", name), chain_text(chain)};
  std::error_code error;
  if (!std::filesystem::exists(name, error)) refuse_name(chain);
  if (!std::filesystem::is_regular_file(name, error))
    throw InputError(fmt::format("{}: is a {}{}; expected a TOML recipe or a built-in name", name,
                                 std::filesystem::is_directory(name, error) ? "folder" : "pipe or a device",
                                 chain_text(chain)));
  return {read_recipe_file(name), name, chain_text(chain)};
}

bool is_builtin(std::string_view name) {
  const auto all = builtin_recipes();
  return std::any_of(all.begin(), all.end(), [&](const BuiltinRecipe& recipe) { return recipe.name == name; });
}

// The recipe and those it extends, the one that extends none last.
std::vector<Layer> read_layers(const std::string& name_or_path) {
  constexpr size_t kMostLayers = 16;
  std::vector<std::string> chain{name_or_path};
  std::vector<Layer> layers;
  for (;;) {
    layers.push_back(read_layer(chain));
    std::string base = extended_by(layers.back().text, layers.back().source);
    if (base.empty()) return layers;
    if (!is_builtin(base)) base = (std::filesystem::path(chain.back()).parent_path() / base).lexically_normal().string();
    const bool again = std::any_of(chain.begin(), chain.end(), [&](const std::string& seen) {
      std::error_code error;  // names of files that are not there are equal to none
      return seen == base || (!is_builtin(seen) && !is_builtin(base) && std::filesystem::equivalent(seen, base, error));
    });
    chain.push_back(base);
    if (again) throw InputError(fmt::format("{}: extends itself{}", base, chain_text(chain)));
    if (chain.size() > kMostLayers)
      throw InputError(
          fmt::format("{}: more than {} recipes extend one another{}", chain.front(), kMostLayers, chain_text(chain)));
  }
}

Recipe read_keys(const Layer& layer, const Recipe& base) {
  try {
    return parse_layer(layer.text, layer.source, base);
  } catch (const InputError& error) {
    throw InputError(error.what() + layer.chain);
  }
}

}  // namespace

bool packs_documents(const Recipe& recipe) { return recipe.data.sampler == SamplerKind::docpack; }

Recipe load_recipe(std::string_view name_or_path, std::span<const std::string> overrides) {
  const std::vector<Layer> layers = read_layers(std::string(name_or_path));
  const auto read = [&](Recipe made) {
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) made = read_keys(*layer, made);
    for (const std::string& change : overrides) apply_override(made, change);
    return made;
  };
  Recipe recipe = read({});
  if (packs_documents(recipe)) {  // what does not say how it is scored is scored as it trains
    Recipe inside;
    inside.score.documents = true;
    recipe = read(inside);
  }
  validate(recipe, name_or_path);
  return recipe;
}

std::string recipe_hash(const Recipe& recipe) { return sha256_hex(to_toml(recipe)); }

ScheduleClock schedule_clock(const Recipe& recipe) {
  const ScheduleClock asked = recipe.optim.schedule.clock;
  if (asked != ScheduleClock::automatic) return asked;
  return recipe.train.steps > 0 ? ScheduleClock::steps : ScheduleClock::time;
}

}  // namespace fairway
