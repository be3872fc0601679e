// Records of a run's folder as a report reads them: what is missing is told as such, what is broken is refused.
#pragma once

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace fairway {

// Whole lines that are JSON objects; the last line of a run that is being written may be cut. Nothing when there is no file.
std::vector<nlohmann::ordered_json> read_records(const std::filesystem::path& path);
// The same of the file's last 64 KiB: enough for what a run is doing now.
std::vector<nlohmann::ordered_json> last_records(const std::filesystem::path& path);

// An object or a list; null when there is no file, InputError when it is no JSON.
nlohmann::ordered_json read_record_file(const std::filesystem::path& path);

double number_of(const nlohmann::ordered_json& record, const char* key, double otherwise = std::nan(""));

// The last part of a path, also of "runs/a/" and ".".
std::string folder_name(const std::filesystem::path& folder);

}  // namespace fairway
