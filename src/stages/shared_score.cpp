#include "stages/shared_score.h"

#include <array>

#include "score/merge_shares.h"

namespace fairway {

void score_on_ranks(Evaluator& evaluator, const ScoreSettings& settings, ScoreLedger& ledger, const ScoreProgress& progress,
                    Communicator& comm) {
  if (comm.size() == 1) return evaluator.run(ledger, progress);
  if (!is_legal(settings)) {
    if (comm.root()) evaluator.run(ledger, progress);
    return comm.barrier();
  }
  if (!can_share(settings)) return evaluator.run(ledger, progress);
  ScoreLedger own = ledger.share(1, 1, 0);
  evaluator.run_share(own, comm.rank(), comm.size(), progress);
  merge_shares(ledger, own, comm);
}

Communicator& workers_of(const ScoreSettings& settings, Communicator& comm) {
  return is_legal(settings) ? comm : single_process();
}

ScoreCost cost_of_ranks(const ScoreCost& mine, Communicator& comm) {
  std::array<double, 4> sums{static_cast<double>(mine.forward.tokens), mine.forward.seconds,
                             static_cast<double>(mine.learning.tokens), mine.learning.seconds};
  comm.all_reduce(sums);
  return {{static_cast<int64_t>(sums[0]), sums[1]}, {static_cast<int64_t>(sums[2]), sums[3]}};
}

}  // namespace fairway
