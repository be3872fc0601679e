// Scoring that ranks share.
#pragma once

#include "comm/communicator.h"
#include "score/evaluator.h"

namespace fairway::app {

// Scores the ledger's stream. Ranks take neighbouring windows where the mode allows it, and afterwards each has the whole
// ledger, that of one process; else rank 0 scores while the others wait, and theirs stays empty. Collective.
void score_on_ranks(Evaluator& evaluator, const ScoreSettings& settings, ScoreLedger& ledger, const ScoreProgress& progress,
                    Communicator& comm);

// Tokens and seconds of all ranks together. Collective.
ScoreCost cost_of_ranks(const ScoreCost& mine, Communicator& comm);

}  // namespace fairway::app
