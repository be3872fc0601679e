// A run's records as comma-separated values (RFC 4180), for spreadsheets and data frames.
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace fairway {

// NAME.csv: a line for each step with all its records, every number as the run wrote it; what a step lacks is empty.
std::filesystem::path write_steps_csv(const std::filesystem::path& run, const std::filesystem::path& folder,
                                      const std::string& name);
// runs.csv: a line for each run with its seed, sizes, times and scores.
std::filesystem::path write_runs_csv(std::span<const std::filesystem::path> runs, std::span<const std::string> names,
                                     const std::filesystem::path& folder);

}  // namespace fairway
