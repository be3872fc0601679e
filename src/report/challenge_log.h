// The closing lines of train.log in the challenge's form (scoring spec §8), which parsers of published logs read: sizes, the
// score from the artifact's bytes, the seconds of scoring.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace fairway {

// The line whose "_exact" score is the result of a mode: "final_int6_sliding_window_exact".
std::string score_line_name(const std::string& name, int64_t bits);

// Adds the closing lines that pack.json, score_plain.json, score_sliding.json and score.json of the folder give; older ones are
// replaced, so that doing it twice is doing it once. Files that are missing give no lines.
std::string closed_log(const std::filesystem::path& run);

}  // namespace fairway
