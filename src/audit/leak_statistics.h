// Is a score better than it may be? Tokens behind a cut are put into another order, and the scores before the cut are compared:
// what the true future takes off them, over several cuts, is a leak if it is more than chance (scoring spec §3.2). Scores that
// differ without any gain come from an evaluator that does not repeat its own bits.
#pragma once

#include "audit/runs.h"

namespace fairway {

struct LeakEstimate {
  double gain = 0;   // nats per target before the cut that the true future saves, a mean over cuts
  double sigma = 0;  // of that mean
  int64_t cuts = 0;
  bool leak() const { return gain > kSigmas * sigma; }
  static constexpr double kSigmas = 3;
};
LeakEstimate estimate_leak(AuditRuns& runs, const ScoreLedger& truth, int64_t context, int64_t cuts, uint64_t seed);
std::string sentence_of(const LeakEstimate& estimate);

}  // namespace fairway
