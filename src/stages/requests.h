// What the stages of a run are asked for, as plain values.
#pragma once

#include <filesystem>
#include <optional>

#include "recipe/recipe.h"

namespace fairway {

struct TrainRequest {
  Recipe recipe;
  std::filesystem::path data, out;
  bool resume = false;
  bool allow_shared = false;          // train on documents that the validation text has too; no audit calls that legal
  std::string profile;                // file for a timeline of a few steps; empty: none
  double started = 0;                 // when the work began, on seconds_now()'s clock
  std::filesystem::path tokenizer{};  // of the shards; empty: tokenizer.model beside them
  std::string from;                   // a run or file whose weights it begins with; empty: the seed's
  uint64_t memory = 0;                // most bytes that training may take; 0: what is free
  std::string note;                   // of its planning, for the log; empty: none
  double peak_gflops = 0;             // of the processor, as measured before; 0: measured while it trains
  std::string origin;                 // text of origin.json in the run's folder; empty: none
};

struct QuantizeRequest {
  std::string from;    // a run folder, or a .safetensors file with `recipe`
  std::string recipe;  // of a lone weight file
  std::vector<std::string> overrides;
  std::optional<Calibration> calibration;  // nothing: the recipe's
  std::string data;                        // shards of the calibration; empty: RUN/data
  std::string out;
  int64_t tokens = 0;       // of Calibration::self; 0: the usual number
  std::string tokenizer{};  // of the shards; empty: tokenizer.model beside them
};

struct PackRequest : QuantizeRequest {
  std::string codec = "rans";
  uint64_t budget = 0;  // 0: what the code leaves of the challenge's limit
  bool as_published = false;
  bool with_tokenizer = false;  // the artifact carries it, within the budget
};

struct ScoreRequest {
  std::string from, data, recipe;
  std::vector<std::string> overrides;  // of [score]
  std::optional<ScoringMode> mode;     // nothing: the recipe's; so are lengths of 0
  int64_t stride = 0, context = 0;
  int64_t tokens = 0;  // only the first so many; 0: all
  bool documents = false, all_targets = false;
  std::string tokenizer{};  // of the shards; empty: tokenizer.model beside them
};
// The artifact of a run, scored as the run's recipe says; the artifact itself does not hold that.
ScoreRequest score_request(const Recipe& recipe, const std::string& artifact, const std::string& data);

}  // namespace fairway
