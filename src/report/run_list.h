// The runs below a folder while it fills: what each is doing, in one row.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fairway {

struct ListedRun {
  std::string name;  // its path below the folder
  std::filesystem::path path;
};
// Runs, folders of seeds (with their runs) and sweeps (without their trials), at most four folders deep, by name.
std::vector<ListedRun> list_runs(const std::filesystem::path& folder);

// {"runs": [{"name", "kind", "state", "steps", "loss", …}], "left_out"}.
nlohmann::ordered_json folder_rows(const std::filesystem::path& folder);

// The names of "run=a%2Fb&run=c"; other keys are not looked at.
std::vector<std::string> names_in_query(const std::string& query);

}  // namespace fairway
