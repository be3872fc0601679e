// What a report shows of a run, gathered from its folder. Every part but the recipe may be missing: a run that is still
// training has no score, one that was never packed has no ledger.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace fairway {

inline constexpr size_t kMostPoints = 500;  // per curve: more cannot be seen and would make the page large

// InputError when the folder holds no run or one of its files cannot be read as what it should be.
nlohmann::ordered_json read_run(const std::filesystem::path& folder, size_t most_points = kMostPoints);

}  // namespace fairway
