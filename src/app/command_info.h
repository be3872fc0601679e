// The tree of commands as plain values, and what is made of it: completion scripts, the manual page, help with examples.
#pragma once

#include <string>
#include <vector>

#include "app/console.h"

namespace fairway::manual {

struct OptionInfo {
  std::string name;                  // "--mode", or "RUN" for an argument
  std::string help, value;           // value: "TEXT"; empty for a switch
  std::string otherwise{};           // its default; empty: none, or told by `help`
  std::vector<std::string> choices;  // the words it takes, where they are few
  bool required = false, argument = false, of_every_command = false;
  std::string text() const;  // its help with its default
};

struct Example {
  std::string command, what;
};

struct CommandInfo {
  std::string name, help;
  std::vector<OptionInfo> options;  // in order; arguments first
  std::vector<CommandInfo> commands;
  std::vector<Example> examples;
};

std::string bash_completion(const CommandInfo& program);
std::string zsh_completion(const CommandInfo& program);
std::string fish_completion(const CommandInfo& program);
std::string manual_page(const CommandInfo& program, const std::string& version);             // roff
app::Pieces help_text(const CommandInfo& command, const std::string& path, size_t columns);  // "fairway data tokenize"

// The command at the end of the words, null when a word is no command.
const CommandInfo* find_command(const CommandInfo& program, const std::vector<std::string>& words);

// Examples of every command ("data tokenize"); each line can be copied to a shell.
std::vector<Example> examples_of(const std::string& command);

}  // namespace fairway::manual
