// Scoring that ranks share.
#pragma once

#include "comm/communicator.h"
#include "score/evaluator.h"

namespace fairway {

// Those who work on one run of an evaluator, for its context: all ranks, but for modes that break a rule rank 0 alone.
Communicator& workers_of(const ScoreSettings& settings, Communicator& comm);

// Scores the ledger's stream. Ranks take neighbouring windows where the mode allows it, else they go through the stream
// together; afterwards each has the whole ledger, that of one process. Modes that break a rule are scored by rank 0 while the
// others wait, and theirs stays empty. Collective.
void score_on_ranks(Evaluator& evaluator, const ScoreSettings& settings, ScoreLedger& ledger, const ScoreProgress& progress,
                    Communicator& comm);

// Tokens and seconds of all ranks together. Collective.
ScoreCost cost_of_ranks(const ScoreCost& mine, Communicator& comm);

}  // namespace fairway
