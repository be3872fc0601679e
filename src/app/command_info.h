// The tree of commands as plain values, and what is made of it: completion scripts, the manual page, help with examples.
#pragma once

#include <string>
#include <vector>

namespace fairway::manual {

struct OptionInfo {
  std::string name;                  // "--mode", or "RUN" for an argument
  std::string help, value;           // value: "TEXT"; empty for a switch
  std::vector<std::string> choices;  // the words it takes, where they are few
  bool required = false, argument = false;
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
std::string manual_page(const CommandInfo& program, const std::string& version);  // roff
std::string help_text(const CommandInfo& command, const std::string& path);       // path: "fairway data tokenize"

// The command at the end of the words, null when a word is no command.
const CommandInfo* find_command(const CommandInfo& program, const std::vector<std::string>& words);

// Examples of every command ("data tokenize"); each line can be copied to a shell.
std::vector<Example> examples_of(const std::string& command);

}  // namespace fairway::manual
