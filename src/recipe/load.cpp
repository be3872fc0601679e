// Where a recipe comes from: the built-in texts, a file, the command line.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/nearest_word.h"
#include "base/sha256.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

constexpr size_t kMaxRecipeBytes = size_t{1} << 20;

std::string read_recipe_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxRecipeBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file.eof() && file.fail())) {
    throw InputError(fmt::format("{}: cannot be read; expected a TOML recipe", path));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxRecipeBytes) {
    throw InputError(fmt::format("{}: longer than {} bytes; expected a TOML recipe", path, kMaxRecipeBytes));
  }
  return text;
}

[[noreturn]] void refuse_name(std::string_view name) {
  std::vector<std::string> names;
  for (const BuiltinRecipe& recipe : builtin_recipes()) names.emplace_back(recipe.name);
  throw InputError(
      fmt::format("recipe \"{}\": neither a file nor a built-in recipe; the nearest built-in one is \"{}\" (all: {})",
                  name.substr(0, 200), nearest_word(name, names), fmt::join(names, ", ")));
}

}  // namespace

bool packs_documents(const Recipe& recipe) { return recipe.data.sampler == SamplerKind::docpack; }

Recipe load_recipe(std::string_view name_or_path, std::span<const std::string> overrides) {
  const auto builtins = builtin_recipes();
  const auto found =
      std::find_if(builtins.begin(), builtins.end(), [&](const BuiltinRecipe& r) { return r.name == name_or_path; });
  std::string text, source(name_or_path);
  if (found != builtins.end()) {
    text = found->text;
    source = fmt::format("built-in recipe {}", found->name);
  } else {
    std::error_code error;
    if (!std::filesystem::exists(source, error)) refuse_name(name_or_path);
    if (!std::filesystem::is_regular_file(source, error)) {
      const bool folder = std::filesystem::is_directory(source, error);
      throw InputError(fmt::format("{}: is a {}; expected a TOML recipe or a built-in name", source,
                                   folder ? "folder" : "pipe or a device"));
    }
    text = read_recipe_file(source);
  }
  const auto read = [&](const Recipe& defaults) {
    Recipe made = parse_recipe(text, source, defaults);
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
