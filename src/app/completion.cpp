// Completion scripts. Each shell gets one table of words by command, made from the tree, so that a new flag needs no other
// line.
#include <fmt/core.h>

#include <functional>

#include "app/command_info.h"

namespace fairway::manual {
namespace {

using Visit = std::function<void(const CommandInfo& command, const std::string& path)>;

// path: the words after "fairway", "" for the program itself.
void walk(const CommandInfo& command, const std::string& path, const Visit& visit) {
  visit(command, path);
  for (const CommandInfo& sub : command.commands) walk(sub, path.empty() ? sub.name : path + " " + sub.name, visit);
}

std::string flags_of(const CommandInfo& command) {
  std::string words;
  for (const OptionInfo& option : command.options) {
    if (!option.argument) words += (words.empty() ? "" : " ") + option.name;
  }
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string names_of(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return joined(names);
}

// Inside single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out;
}

// Follows the words typed so far down the tree, then offers the words of a flag, flags, or commands and words of an argument.
constexpr const char* kBashFunction = R"sh(_fairway() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= word words= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    case " $(_fairway_commands "$path") " in *" $word "*) path=${path:+$path }$word ;; *) break ;; esac
  done
  COMPREPLY=()
  case $previous in --*) words=$(_fairway_choices "$path $previous") ;; esac
  if [ -z "$words" ]; then
    case $current in
      -*) words=$(_fairway_flags "$path") ;;
      *) words="$(_fairway_commands "$path") $(_fairway_choices "$path")" ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ ${#COMPREPLY[@]} = 0 ]; then compopt -o default 2>/dev/null; fi
}
complete -F _fairway fairway
)sh";

constexpr const char* kZshFunction = R"sh(_fairway() {
  local at='' word i
  local -a commands flags choices
  _fairway_table ''
  for ((i = 2; i < CURRENT; ++i)); do
    word=$words[i]
    (( ${commands[(I)$word:*]} )) || break
    at=${at:+$at }$word
    _fairway_table $at
  done
  [[ $words[CURRENT-1] == --* ]] && _fairway_choices "$at $words[CURRENT-1]"
  [[ $#choices == 0 && $PREFIX != -* ]] && _fairway_choices $at
  if (( $#choices )); then
    compadd -a choices
  elif [[ $PREFIX == -* ]]; then
    _describe flag flags
  elif (( $#commands )); then
    _describe command commands
  else
    _files
  fi
}
if [[ $funcstack[1] == _fairway ]]; then _fairway "$@"; else compdef _fairway fairway; fi
)sh";

constexpr const char* kFishFunction = R"sh(function __fairway_at
  set -l words (commandline -opc)
  set -e words[1]
  set -l path
  for word in $words
    string match -q -- '-*' $word; and break
    set path $path $word
  end
  set -l want (string split -n ' ' -- $argv[1])
  for i in (seq (count $want))
    test "$path[$i]" = "$want[$i]"; or return 1
  end
  if test "$argv[2]" = exact
    test (count $path) -eq (count $want)
  end
end
)sh";

}  // namespace

std::string bash_completion(const CommandInfo& program) {
  std::string commands, flags, choices;
  walk(program, "", [&](const CommandInfo& command, const std::string& path) {
    if (!command.commands.empty()) commands += fmt::format("    '{}') words='{}' ;;\n", path, names_of(command.commands));
    flags += fmt::format("    '{}') words='{}' ;;\n", path, flags_of(command));
    for (const OptionInfo& option : command.options) {
      if (option.choices.empty()) continue;
      const std::string key = option.argument ? path : path + " " + option.name;
      choices += fmt::format("    '{}') words='{}' ;;\n", key, joined(option.choices));
    }
  });
  const auto table = [](const char* name, const std::string& cases) {
    return fmt::format("{}() {{\n  local words=\n  case \"$1\" in\n{}  esac\n  printf '%s' \"$words\"\n}}\n", name, cases);
  };
  return "# bash completion of fairway, made by `fairway completion bash`\n" + table("_fairway_commands", commands) +
         table("_fairway_flags", flags) + table("_fairway_choices", choices) + kBashFunction;
}

std::string zsh_completion(const CommandInfo& program) {
  std::string cases;
  walk(program, "", [&](const CommandInfo& command, const std::string& path) {
    cases += fmt::format("    '{}')\n", path);
    if (!command.commands.empty()) {
      cases += "      commands=(";
      for (const CommandInfo& sub : command.commands) cases += fmt::format(" '{}:{}'", sub.name, quoted(sub.help));
      cases += " )\n";
    }
    cases += "      flags=(";
    for (const OptionInfo& option : command.options) {
      if (!option.argument) cases += fmt::format(" '{}:{}'", option.name, quoted(option.help));
    }
    cases += " ) ;;\n";
  });
  std::string choices;
  walk(program, "", [&](const CommandInfo& command, const std::string& path) {
    for (const OptionInfo& option : command.options) {
      if (!option.choices.empty())
        choices += fmt::format("    '{}') choices=({}) ;;\n", option.argument ? path : path + " " + option.name,
                               joined(option.choices));
    }
  });
  return "#compdef fairway\n# made by `fairway completion zsh`\n_fairway_table() {\n  commands=() flags=()\n  case $1 in\n" +
         cases + "  esac\n}\n_fairway_choices() {\n  case $1 in\n" + choices + "  esac\n}\n" + kZshFunction;
}

std::string fish_completion(const CommandInfo& program) {
  std::string text = std::string("# fish completion of fairway, made by `fairway completion fish`\n") + kFishFunction;
  walk(program, "", [&](const CommandInfo& command, const std::string& path) {
    for (const CommandInfo& sub : command.commands)
      text += fmt::format("complete -c fairway -n \"__fairway_at '{}' exact\" -f -a {} -d '{}'\n", path, sub.name,
                          quoted(sub.help));
    for (const OptionInfo& option : command.options) {
      if (option.argument) {
        if (!option.choices.empty())
          text += fmt::format("complete -c fairway -n \"__fairway_at '{}'\" -f -a '{}'\n", path, joined(option.choices));
        continue;
      }
      text += fmt::format(
          "complete -c fairway -n \"__fairway_at '{}'\" -l {}{} -d '{}'\n", path, option.name.substr(2),
          option.choices.empty() ? (option.value.empty() ? "" : " -r") : fmt::format(" -x -a '{}'", joined(option.choices)),
          quoted(option.help));
    }
  });
  return text;
}

}  // namespace fairway::manual
