// One HTML page with everything in it: styles, script and data. Opens offline, in light or dark, on any width.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace fairway {

// {"runs": […], "made": date, "live": …}, the form the page's script reads.
nlohmann::ordered_json report_data(std::span<const std::filesystem::path> folders, bool live);
std::string report_page(const nlohmann::ordered_json& data);

}  // namespace fairway
