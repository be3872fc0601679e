// `bench … --against FILE`: timings beside those that the same command wrote with --json before.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace fairway::app {

struct AgainstFlags {
  std::string file;
  double most = 3;  // percent slower
};
void add_against(CLI::App& command, AgainstFlags& flags);

// Adds `against` to the result and lines to the text. 1 if a timing is slower than it may be, else 0. InputError if the file
// has no timing of the same thing: recipe, size and device must be alike.
int hold_against(const AgainstFlags& flags, nlohmann::ordered_json& result, std::string& text);

}  // namespace fairway::app
