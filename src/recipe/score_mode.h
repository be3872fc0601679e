// How a stream is scored: a base mode, and what is added to it between the model's distribution and the NLL (scoring spec
// §2.8). In words: "sliding", "lora-ttt+slot+tilt"; "ngram" is another name of "sliding+tilt".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/fields.h"

namespace fairway {

enum class ScoreMode : uint8_t { plain, sliding, slot, ttt, lora_ttt, slot_published, ngram_published };

template <>
struct EnumNames<ScoreMode> {
  static constexpr std::array<std::string_view, 7> names{"plain",    "sliding",        "slot",           "ttt",
                                                         "lora-ttt", "slot-published", "ngram-published"};
};

constexpr bool keeps_rules(ScoreMode mode) { return mode != ScoreMode::slot_published && mode != ScoreMode::ngram_published; }

struct ScoringMode {
  ScoreMode base = ScoreMode::sliding;
  bool tilt = false;  // towards what repeated text suggests, by [score.ngram]
  bool slot = false;  // an offset of the last hidden state beside weights or adapters that learn, by [score.slot]

  bool operator==(const ScoringMode&) const = default;
  bool fits_offsets() const { return slot || base == ScoreMode::slot; }
};

// The additions, each with its word and the bases that it goes with; a mode's words have them in this order, in which they are
// applied.
struct ScoreAddition {
  std::string_view name;
  bool ScoringMode::*member;
  bool (*suits)(ScoreMode base);
};
constexpr bool adapts(ScoreMode mode) { return mode == ScoreMode::ttt || mode == ScoreMode::lora_ttt; }
inline constexpr std::array kScoreAdditions{ScoreAddition{"slot", &ScoringMode::slot, adapts},
                                            ScoreAddition{"tilt", &ScoringMode::tilt, keeps_rules}};

std::string name_of(const ScoringMode& mode);
std::vector<std::string> words_of(const ScoringMode& mode);       // the base, then the additions
std::optional<ScoringMode> scoring_mode(std::string_view words);  // nothing where they name no mode
std::vector<std::string> scoring_modes();                         // all that there are

}  // namespace fairway
