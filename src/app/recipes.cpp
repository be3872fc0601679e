// `fairway recipes`, `fairway recipe show NAME`, `fairway recipe diff A B`, `fairway recipe keys`.
#include <fmt/core.h>

#include <filesystem>

#include "app/command.h"
#include "model/shape/model_shape.h"
#include "recipe/recipe_json.h"

namespace fairway::app {
namespace {

int list_recipes(const CommonFlags& flags) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  std::string text;
  for (const BuiltinRecipe& recipe : builtin_recipes()) {
    names.push_back(recipe.name);
    text += fmt::format("{:14} {}\n", recipe.name, recipe.summary);
  }
  print_result(flags, {{"recipes", names}}, text);
  return 0;
}

int show_recipe(const CommonFlags& flags, const std::string& name, const std::vector<std::string>& overrides) {
  const Recipe recipe = load_recipe(name, overrides);
  const int64_t parameters = parameter_count(recipe.model);
  const double flops = flops_per_token(recipe.model, recipe.data.seq_len, false);
  nlohmann::ordered_json result{{"parameters", parameters}, {"flops_per_token", flops}, {"hash", recipe_hash(recipe)}};
  std::string text = fmt::format("# {} parameters, {:.1f} MFLOP per token (forward and backward)", parameters, flops / 1e6);
  if (recipe.model.loop.count > 0) {
    const double looped = flops_per_token(recipe.model, recipe.data.seq_len, true);
    result["flops_per_token_looped"] = looped;
    text += fmt::format(", {:.1f} looped", looped / 1e6);
  }
  result["recipe"] = to_json_value(recipe);
  print_result(flags, result, text + "\n" + to_toml(recipe));
  return 0;
}

// A run's own recipe, where a run folder is named.
Recipe recipe_of(const std::string& name) {
  const std::filesystem::path stored = std::filesystem::path(name) / "recipe.toml";
  return load_recipe(std::filesystem::is_regular_file(stored) ? stored.string() : name);
}

void add_differences(const std::string& prefix, const nlohmann::ordered_json& a, const nlohmann::ordered_json& b,
                     nlohmann::ordered_json& out) {
  for (const auto& [key, value] : a.items()) {
    if (value.is_object())
      add_differences(prefix + key + ".", value, b[key], out);
    else if (value != b[key])
      out.push_back({{"key", prefix + key}, {"a", value}, {"b", b[key]}});
  }
}

int diff_recipes(const CommonFlags& flags, const std::string& a, const std::string& b) {
  nlohmann::ordered_json differences = nlohmann::ordered_json::array();
  add_differences("", to_json_value(recipe_of(a)), to_json_value(recipe_of(b)), differences);
  size_t width = a.size();
  for (const auto& one : differences) width = std::max(width, one["a"].dump().size());
  std::string text = differences.empty() ? fmt::format("{} and {} have the same keys\n", a, b)
                                         : fmt::format("{:34} {:{}}  {}\n", "key", a, width, b);
  for (const auto& one : differences)
    text += fmt::format("{:34} {:{}}  {}\n", one["key"].get<std::string>(), one["a"].dump(), width, one["b"].dump());
  print_result(flags, {{"differences", differences}}, text);
  return 0;
}

int list_keys(const CommonFlags& flags) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  std::string text;
  for (const KeyInfo& key : recipe_keys()) {
    keys.push_back(
        {{"key", key.key}, {"type", key.type}, {"default", key.default_value}, {"allowed", key.allowed}, {"help", key.help}});
    text += fmt::format("{:34} {:10} default {:12} {}\n", key.key, key.type, key.default_value, key.help);
  }
  print_result(flags, {{"keys", keys}}, text);
  return 0;
}

}  // namespace

void add_recipes(CLI::App& program) {
  add_command(program, "recipes", "list the built-in recipes", list_recipes);
  CLI::App* recipe = program.add_subcommand("recipe", "show recipes and their keys");
  recipe->require_subcommand(1);
  auto name = std::make_shared<std::string>();
  auto overrides = std::make_shared<std::vector<std::string>>();
  CLI::App* show = add_command(*recipe, "show", "print a recipe with every key resolved",
                               [=](const CommonFlags& flags) { return show_recipe(flags, *name, *overrides); });
  show->add_option("NAME", *name, "a built-in recipe or a TOML file")->required();
  show->add_option("--set", *overrides, "key=value, replaces a key of the recipe")->take_all();
  auto sides = std::make_shared<std::pair<std::string, std::string>>();
  CLI::App* diff = add_command(*recipe, "diff", "keys that differ between two recipes or runs",
                               [=](const CommonFlags& flags) { return diff_recipes(flags, sides->first, sides->second); });
  diff->add_option("A", sides->first, "a built-in recipe, a TOML file or a run folder")->required();
  diff->add_option("B", sides->second, "the other one")->required();
  add_command(*recipe, "keys", "list every key with its default, range and meaning", list_keys);
}

}  // namespace fairway::app
