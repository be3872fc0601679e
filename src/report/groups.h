// Folders of several runs as a report reads them: the seeds of one recipe (seeds.json), the trials of a sweep (sweep.json).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace fairway {

enum class FolderKind : uint8_t { run, seeds, sweep, other };
FolderKind folder_kind_of(const std::filesystem::path& folder);

// One side of a comparison: a run, or the seeds of a recipe.
struct ReportSide {
  std::string name;
  std::vector<std::filesystem::path> runs;
};
// Of a folder of seeds those that have begun; of a sweep its best run. InputError when there is none, or the folder holds no
// run.
ReportSide side_of(const std::filesystem::path& folder);
// Names that differ: of equal ones so many parts of their paths as it takes.
std::vector<std::string> distinct_names(std::span<const std::filesystem::path> folders);

// {"rows": summaries by seed, "mean", "sd"}.
nlohmann::ordered_json seeds_data(const std::filesystem::path& folder);
// {"keys", "trials": [{"name", "rung", "share", "values", "score", "steps", "seconds", "failed"}], "metric", "best"}, and the
// folders of the trials with most of the budget, the best first.
struct SweepData {
  nlohmann::ordered_json data;
  std::vector<std::filesystem::path> runs;
};
SweepData sweep_data(const std::filesystem::path& folder);

// Keys of the sides' first recipes whose values differ: [{"key", "values"}]; seeds are not looked at where a side has several.
nlohmann::ordered_json recipe_differences(std::span<const ReportSide> sides);

}  // namespace fairway
