// What a run is doing, as its files tell while it goes on: the phase, the time left, the size to expect.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace fairway {

struct Recipe;

// Whether a process writes there now: the lock file names one that lives.
bool is_being_written(const std::filesystem::path& folder);

// {"running", "phase": name or null when all is done, "done": […], "plan": […], "fraction", "seconds_left", "more_to_come",
// "since": time of the last record, "forecast_bytes"}; what is not known is null.
nlohmann::ordered_json run_state(const std::filesystem::path& folder, const Recipe& recipe);

}  // namespace fairway
