// One HTML page with everything in it: styles, script and data. Opens offline, in light or dark, on any width.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

namespace fairway {

// {"page": which form, "title", "runs": […], "made": date, "live": …}, what the page's script reads. One run, the seeds of a
// recipe, the trials of a sweep, or several of these side by side; the first is the one that others are compared with.
nlohmann::ordered_json report_data(std::span<const std::filesystem::path> folders, bool live);
// The runs below a folder, or those that the query names (run=NAME, as the list has it); nothing when there is no such run.
std::optional<nlohmann::ordered_json> folder_data(const std::filesystem::path& folder, const std::string& query);
std::string report_page(const nlohmann::ordered_json& data);
std::string json_text(const nlohmann::ordered_json& data);  // what is no UTF-8 is replaced

}  // namespace fairway
