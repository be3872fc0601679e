#include "app/shared_score.h"

#include <array>

#include "comm/share_bytes.h"

namespace fairway::app {

void score_on_ranks(Evaluator& evaluator, const ScoreSettings& settings, ScoreLedger& ledger, const ScoreProgress& progress,
                    Communicator& comm) {
  if (comm.size() == 1) return evaluator.run(ledger, progress);
  if (!can_share(settings) || !is_legal(settings)) {
    if (comm.root()) evaluator.run(ledger, progress);
    return comm.barrier();
  }
  const std::span<const uint16_t> stream = ledger.stream();
  ScoreLedger own = make_ledger(stream, settings);
  evaluator.run_share(own, comm.rank(), comm.size(), progress);
  for (const std::string& bytes : gather_bytes(comm, own.share_bytes())) {
    ScoreLedger share = make_ledger(stream, settings);
    share.take_share_bytes(bytes);
    ledger.merge(share);
  }
}

ScoreCost cost_of_ranks(const ScoreCost& mine, Communicator& comm) {
  std::array<double, 4> sums{static_cast<double>(mine.forward.tokens), mine.forward.seconds,
                             static_cast<double>(mine.learning.tokens), mine.learning.seconds};
  comm.all_reduce(sums);
  return {{static_cast<int64_t>(sums[0]), sums[1]}, {static_cast<int64_t>(sums[2]), sums[3]}};
}

}  // namespace fairway::app
