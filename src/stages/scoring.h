// What `fairway score` and `fairway audit` share: weights, held-out stream and settings of a request.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "score/evaluator.h"
#include "stages/held_out.h"
#include "stages/machine.h"
#include "stages/requests.h"
#include "stages/weights.h"

namespace fairway {

struct Scoring {
  WeightSource source;
  HeldOut held_out;
  ScoreSettings settings;
  std::vector<uint16_t> stream;
  bool whole;        // of all validation tokens, but for a last partial window
  std::string text;  // identity of the whole validation text (tokenizer/text_identity.h)

  ScoredModel model() const;  // refers to this object
};
ScoreSettings settings_of(const ScoreRequest& request, const Recipe& recipe);
// InputError for a request that does not fit the model or the data. The stream is what is to be scored: whole windows, as the
// challenge keeps them, unless all targets are asked for.
std::unique_ptr<Scoring> open_scoring(const ScoreRequest& request);

struct ScoredRun {
  ScoreLedger ledger;
  BlockSums blocks;  // of the ledger, which the score is the sum of
  Score score;
  ScoreCost cost;  // of this rank
  struct Mark {
    int64_t targets;
    double seconds, bits_per_byte;  // up to there
  };
  std::vector<Mark> marks;  // ttt: about every ten chunks
};
// Scores the stream under the settings, with a progress line. Ranks share the work (shared_score.h); the whole run is rank 0's,
// the others' has no score. Collective.
ScoredRun score_stream(const Scoring& scoring, const ScoreSettings& settings, std::span<const uint16_t> stream,
                       Machine& machine, bool quiet, Communicator& comm = single_process());

}  // namespace fairway
