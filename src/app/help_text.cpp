#include <fmt/core.h>

#include <algorithm>

#include "app/command_info.h"

namespace fairway::manual {
namespace {

std::string shown(const OptionInfo& option) {
  if (option.argument) return option.name;
  return option.value.empty() ? option.name : option.name + " " + option.value;
}

std::string usage(const CommandInfo& command, const std::string& path) {
  std::string text = path;
  for (const OptionInfo& option : command.options) {
    if (!option.argument && !option.required) continue;
    text += option.required ? fmt::format(" {}", shown(option)) : fmt::format(" [{}]", shown(option));
  }
  if (!command.commands.empty()) text += " COMMAND";
  const bool others = std::any_of(command.options.begin(), command.options.end(),
                                  [](const OptionInfo& o) { return !o.argument && !o.required; });
  return text + (others ? " [options]" : "");
}

std::string table(const std::vector<std::pair<std::string, std::string>>& rows) {
  size_t width = 0;
  for (const auto& [name, help] : rows) width = std::max(width, std::min<size_t>(name.size(), 28));
  std::string text;
  for (const auto& [name, help] : rows) {
    text += fmt::format("  {:<{}}", name, width);
    text += name.size() > width ? fmt::format("\n  {:<{}}  {}\n", "", width, help) : fmt::format("  {}\n", help);
  }
  return text;
}

}  // namespace

std::string help_text(const CommandInfo& command, const std::string& path) {
  std::string text = fmt::format("{}: {}\n\nusage: {}\n", path, command.help, usage(command, path));
  std::vector<std::pair<std::string, std::string>> rows;
  for (const CommandInfo& sub : command.commands) rows.emplace_back(sub.name, sub.help);
  if (!rows.empty()) text += "\ncommands:\n" + table(rows);
  rows.clear();
  for (const OptionInfo& option : command.options) rows.emplace_back(shown(option), option.help);
  if (!rows.empty()) text += "\noptions:\n" + table(rows);
  if (!command.examples.empty()) text += "\nexamples:\n";
  for (const Example& example : command.examples) text += fmt::format("  {}\n      {}\n", example.command, example.what);
  return text;
}

const CommandInfo* find_command(const CommandInfo& program, const std::vector<std::string>& words) {
  const CommandInfo* at = &program;
  for (const std::string& word : words) {
    const auto next =
        std::find_if(at->commands.begin(), at->commands.end(), [&](const CommandInfo& sub) { return sub.name == word; });
    if (next == at->commands.end()) return nullptr;
    at = &*next;
  }
  return at;
}

}  // namespace fairway::manual
