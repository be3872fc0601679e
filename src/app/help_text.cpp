#include <fmt/core.h>

#include <algorithm>

#include "app/command_info.h"

namespace fairway::manual {
namespace {

using app::Pieces;
using app::Tone;

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

// Broken at blanks; `before` columns are in use already, and lines after the first are indented. A word that is longer than a
// line stays whole.
std::string wrapped(const std::string& text, size_t before, size_t indent, size_t columns) {
  std::string out;
  size_t used = before;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size()), length = end - at;
    if (at > 0 && used + 1 + length > columns) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
    } else if (at > 0) {
      out += ' ';
      ++used;
    }
    out += text.substr(at, length);
    used += length;
    at = end + 1;
  }
  return out;
}

std::string table(const std::vector<std::pair<std::string, std::string>>& rows, size_t columns) {
  size_t width = 0;
  for (const auto& [name, help] : rows) width = std::max(width, std::min<size_t>(name.size(), 24));
  std::string text;
  for (const auto& [name, help] : rows) {
    text += fmt::format("  {:<{}}", name, width);
    if (name.size() > width) text += fmt::format("\n  {:<{}}", "", width);
    text += fmt::format("  {}\n", wrapped(help, width + 4, width + 4, columns));
  }
  return text;
}

}  // namespace

std::string OptionInfo::text() const {
  std::string all = help;
  if (!otherwise.empty() && help.find("default") == std::string::npos) all += fmt::format(" (default: {})", otherwise);
  return all;
}

Pieces help_text(const CommandInfo& command, const std::string& path, size_t columns) {
  Pieces pieces{{path, Tone::heading},
                {wrapped(": " + command.help, path.size(), 2, columns) + "\n\n"},
                {"usage:", Tone::heading},
                {" " + wrapped(usage(command, path), 7, 7, columns) + "\n"}};
  const auto add = [&](const char* heading, const std::string& text) {
    if (text.empty()) return;
    pieces.push_back({"\n"});
    pieces.push_back({std::string(heading) + ":", Tone::heading});
    pieces.push_back({"\n" + text});
  };
  std::vector<std::pair<std::string, std::string>> parts, own, common;
  for (const CommandInfo& sub : command.commands) parts.emplace_back(sub.name, sub.help);
  for (const OptionInfo& option : command.options)
    (option.of_every_command ? common : own).emplace_back(shown(option), option.text());
  std::string examples;
  for (const Example& example : command.examples) examples += fmt::format("  {}\n      {}\n", example.command, example.what);
  add("commands", table(parts, columns));
  add("options", table(own, columns));
  add("options of every command", table(common, columns));
  add("examples", examples);
  return pieces;
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
