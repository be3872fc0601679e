// What `fairway score` and `fairway audit` share: the flags of a request, and how a score is told.
#pragma once

#include "app/command.h"
#include "stages/scoring.h"

namespace fairway::app {

void add_scoring_flags(CLI::App& command, const std::shared_ptr<ScoreRequest>& request, bool required);
ScoringMode parse_mode(const std::string& name);  // InputError lists the names

// The fields that others read, with what the mode adds.
nlohmann::ordered_json score_json(const Scoring& scoring, const ScoreSettings& settings, const ScoredRun& run);
std::string score_text(const Scoring& scoring, const ScoreSettings& settings, const Score& score);

}  // namespace fairway::app
