// What a report says of runs against runs beside their numbers: differences of scores with intervals, as `fairway compare` has
// them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/thread_pool.h"

namespace fairway::app {

// Adds "comparison" to a page of several runs, and the interval of the mean to one of seeds; leaves others as they are. What
// cannot be compared is told with the reason.
void add_comparison(const std::vector<std::filesystem::path>& folders, ThreadPool& pool, nlohmann::ordered_json& data);

}  // namespace fairway::app
