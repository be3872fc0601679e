// The evaluator under audit, run on streams of the audit's making.
#pragma once

#include "audit/audit.h"
#include "audit/checks.h"
#include "audit/probes.h"

namespace fairway {

class AuditRuns {
 public:
  explicit AuditRuns(const AuditInput& input) : AuditRuns(input, input.settings) {}
  AuditRuns(const AuditInput& input, const ScoreSettings& settings);

  ScoreLedger run(std::span<const uint16_t> stream, std::span<const int64_t> captured = {});
  ScoreLedger run_for(std::span<const uint16_t> stream, ScoreLedger::Wanted targets);
  // By so many threads, with so many windows, or documents that learn on their own, at once.
  ScoreLedger run_otherwise(std::span<const uint16_t> stream, int threads, int64_t batch);
  // As so many ranks would, each with an evaluator and a ledger of its own, merged.
  ScoreLedger run_in_shares(std::span<const uint16_t> stream, int64_t ranks);
  // As two ranks would that work on one stream together, each with an executor, threads and batches of its own: what each ends
  // with.
  std::vector<ScoreLedger> run_together(std::span<const uint16_t> stream);

  Finding future_dependence(const ScoreLedger& truth, int64_t cut, Mutation mutation);        // T2
  Finding target_dependence(const ScoreLedger& truth, int64_t target, uint16_t replacement);  // T3

 private:
  ScoreLedger run(Evaluator& evaluator, std::span<const uint16_t> stream, std::span<const int64_t> captured) const;
  ScoreLedger run_by(Communicator& comm, std::span<const uint16_t> stream, int threads, int64_t batch) const;

  const AuditInput* input_;
  ScoreSettings settings_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace fairway
