// `fairway help`, `fairway completion` and `fairway man`, all made from the tree of commands.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "app/command.h"
#include "app/command_info.h"
#include "base/error.h"
#include "base/nearest_word.h"
#include "recipe/recipe.h"
#include "recipe/score_recipe.h"

namespace fairway::app {
namespace {

using manual::CommandInfo;

// Words that a flag takes, where the parser itself does not list them.
std::vector<std::string> words_of(const std::string& option) {
  std::vector<std::string> words;
  if (option == "--mode") {
    words = scoring_modes();
  } else if (option == "RECIPE" || option == "--recipe" || option == "A" || option == "B") {
    for (const BuiltinRecipe& recipe : builtin_recipes()) words.emplace_back(recipe.name);
  } else if (option == "--backend") {
    words = {"cpu", "cuda", "ref"};
  } else if (option == "--color") {
    words = {"auto", "always", "never"};
  } else if (option == "--calibration") {
    words = {"self", "train", "online"};
  } else if (option == "--codec") {
    words = {"best", "rans", "brotli", "lzma"};
  } else if (option == "--paired") {
    words = {"seeds", "documents", "both"};
  } else if (option == "SHELL") {
    words = {"bash", "zsh", "fish"};
  }
  return words;
}

// "INT", without the parser's list of what it accepts; nothing for a switch.
std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

CommandInfo info_of(const CLI::App& app, const std::string& path) {
  CommandInfo info{.name = app.get_name(), .help = app.get_description(), .examples = manual::examples_of(path)};
  for (const bool arguments : {true, false}) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_positional() != arguments) continue;
      const std::string name = option->get_positional()       ? option->get_name(true)
                               : option->get_lnames().empty() ? ""
                                                              : "--" + option->get_lnames()[0];
      if (name.empty() || name == "--help") continue;
      info.options.push_back({.name = name,
                              .help = option->get_description(),
                              .value = value_name(*option),
                              .otherwise = option->get_default_str(),
                              .choices = words_of(name),
                              .required = option->get_required(),
                              .argument = arguments,
                              .of_every_command = option->get_group() == kEveryCommand});
    }
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); }))
    info.commands.push_back(info_of(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name()));
  return info;
}

CommandInfo whole_tree(const CLI::App& program) {
  CommandInfo info = info_of(program, "");
  info.name = "fairway";
  return info;
}

// Lines longer than a hundred characters are hard to read, and eighty is what a terminal usually has.
size_t help_columns() { return std::min<size_t>(terminal_columns(STDOUT_FILENO, 80), 100); }

int show_help(const CommonFlags& common, const CLI::App& program, const std::vector<std::string>& words) {
  const CommandInfo tree = whole_tree(program);
  const CommandInfo* command = manual::find_command(tree, words);
  std::string path = "fairway";
  for (const std::string& word : words) path += " " + word;
  if (command == nullptr) {
    std::vector<std::string> known;
    for (const CommandInfo& sub : tree.commands) known.push_back(sub.name);
    throw InputError(fmt::format("help: {} is not a command; the nearest is {}", path, nearest_word(words.front(), known)));
  }
  nlohmann::ordered_json examples = nlohmann::ordered_json::array();
  for (const manual::Example& example : command->examples) examples.push_back(example.command);
  nlohmann::ordered_json commands = nlohmann::ordered_json::array();
  for (const CommandInfo& sub : command->commands) commands.push_back(sub.name);
  print_result(common, {{"command", path}, {"help", command->help}, {"commands", commands}, {"examples", examples}},
               help_text(*command, path, help_columns()));
  return 0;
}

int show_completion(const CommonFlags& common, const CLI::App& program, const std::string& shell) {
  const CommandInfo tree = whole_tree(program);
  const std::string script = shell == "bash"  ? bash_completion(tree)
                             : shell == "zsh" ? zsh_completion(tree)
                                              : fish_completion(tree);
  print_result(common, {{"script", script}}, script);
  return 0;
}

}  // namespace

Pieces help_pieces(const CLI::App& program, const CLI::App& command) {
  std::string path = command.get_name();
  for (const CLI::App* above = command.get_parent(); above != nullptr; above = above->get_parent())
    path = above->get_name() + " " + path;
  const std::string words = &command == &program ? "" : path.substr(path.find(' ') + 1);
  return help_text(info_of(command, words), path, help_columns());
}

void add_help(CLI::App& program) {
  const CLI::App* tree = &program;
  auto words = std::make_shared<std::vector<std::string>>();
  auto shell = std::make_shared<std::string>();
  CLI::App* help = add_command(program, "help", "a command with its options and examples",
                               [=](const CommonFlags& common) { return show_help(common, *tree, *words); });
  help->add_option("COMMAND", *words, "the command, for example data tokenize");
  CLI::App* completion = add_command(program, "completion", "a script that completes commands and flags in a shell",
                                     [=](const CommonFlags& common) { return show_completion(common, *tree, *shell); });
  completion->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add_command(program, "man", "the manual page, fairway.1", [=](const CommonFlags& common) {
    const std::string page = manual_page(whole_tree(*tree), FAIRWAY_VERSION);
    print_result(common, {{"page", page}}, page);
    return 0;
  });
}

}  // namespace fairway::app
