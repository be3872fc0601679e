// What `fairway score` and `fairway audit` share: weights, held-out stream and settings from the command line.
#pragma once

#include <memory>

#include "app/command.h"
#include "app/validation.h"
#include "app/weights.h"
#include "comm/communicator.h"
#include "score/evaluator.h"

namespace fairway::app {

struct ScoringFlags {
  std::string from, data, recipe, mode;
  std::vector<std::string> overrides;
  int64_t stride = 0, context = 0, tokens = 0;
  bool documents = false, all_targets = false;
};
void add_scoring_flags(CLI::App& command, const std::shared_ptr<ScoringFlags>& flags, bool required);

struct Scoring {
  WeightSource source;
  HeldOut held_out;
  ScoreSettings settings;
  std::vector<uint16_t> stream;
  bool whole;        // of all validation tokens, but for a last partial window
  std::string text;  // identity of the whole validation text (tokenizer/text_identity.h)

  ScoredModel model() const;  // refers to this object
};
// InputError for flags that do not fit the model or the data. The stream is what is to be scored: whole windows, as the
// challenge keeps them, unless --all-targets is given.
std::unique_ptr<Scoring> open_scoring(const ScoringFlags& flags);

struct ScoredRun {
  ScoreLedger ledger;
  BlockSums blocks;  // of the ledger, which the score is the sum of
  Score score;
  ScoreCost cost;  // of this rank
};
// Scores the stream under the settings, with a progress line. Ranks share the work (shared_score.h); the whole run is rank 0's,
// the others' has no score. Collective.
ScoredRun score_stream(const Scoring& scoring, const ScoreSettings& settings, std::span<const uint16_t> stream,
                       Machine& machine, bool quiet, Communicator& comm = single_process());

// The fields that others read, with what the mode adds.
nlohmann::ordered_json score_json(const Scoring& scoring, const ScoreSettings& settings, const ScoredRun& run);
std::string score_text(const Scoring& scoring, const ScoreSettings& settings, const Score& score);

}  // namespace fairway::app
