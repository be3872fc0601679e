#include "recipe/score_mode.h"

namespace fairway {

std::vector<std::string> words_of(const ScoringMode& mode) {
  std::vector<std::string> words{std::string(name_of(mode.base))};
  for (const ScoreAddition& addition : kScoreAdditions)
    if (mode.*addition.member) words.emplace_back(addition.name);
  return words;
}

std::string name_of(const ScoringMode& mode) {
  std::string name;
  for (const std::string& word : words_of(mode)) name += (name.empty() ? "" : "+") + word;
  return name;
}

namespace {

std::vector<ScoringMode> all_modes() {
  std::vector<ScoringMode> modes;
  for (size_t base = 0; base < EnumNames<ScoreMode>::names.size(); ++base) {
    const size_t first = modes.size();
    modes.push_back({static_cast<ScoreMode>(base)});
    for (const ScoreAddition& addition : kScoreAdditions) {
      for (size_t i = first, end = modes.size(); i < end && addition.suits(modes[i].base); ++i) {
        modes.push_back(modes[i]);
        modes.back().*addition.member = true;
      }
    }
  }
  return modes;
}

}  // namespace

std::vector<std::string> scoring_modes() {
  std::vector<std::string> names;
  for (const ScoringMode& mode : all_modes()) names.push_back(name_of(mode));
  return names;
}

std::optional<ScoringMode> scoring_mode(std::string_view words) {
  if (words == "ngram") return ScoringMode{ScoreMode::sliding, true};
  for (const ScoringMode& mode : all_modes())
    if (words == name_of(mode)) return mode;
  return std::nullopt;
}

}  // namespace fairway
