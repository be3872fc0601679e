#include "audit/runs.h"

#include "comm/thread_ranks.h"

namespace fairway {

AuditRuns::AuditRuns(const AuditInput& input, const ScoreSettings& settings)
    : input_(&input), settings_(settings), evaluator_(make_evaluator(input.model, settings, input.context)) {}

ScoreLedger AuditRuns::run(Evaluator& evaluator, std::span<const uint16_t> stream, std::span<const int64_t> captured) const {
  ScoreLedger ledger = make_ledger(stream, settings_);
  ledger.capture(captured);
  evaluator.run(ledger, {});
  return ledger;
}

ScoreLedger AuditRuns::run(std::span<const uint16_t> stream, std::span<const int64_t> captured) {
  return run(*evaluator_, stream, captured);
}

ScoreLedger AuditRuns::run_for(std::span<const uint16_t> stream, ScoreLedger::Wanted targets) {
  ScoreLedger ledger = make_ledger(stream, settings_);
  ledger.want(targets);
  evaluator_->run(ledger, {});
  return ledger;
}

ScoreLedger AuditRuns::run_otherwise(std::span<const uint16_t> stream, int threads, int64_t batch) {
  return run_by(single_process(), stream, threads, batch);
}

ScoreLedger AuditRuns::run_by(Communicator& comm, std::span<const uint16_t> stream, int threads, int64_t batch) const {
  ScoreSettings settings = settings_;
  settings.score.windows = settings.score.lora.batch = batch;
  Queue queue(threads);
  const std::unique_ptr<Executor> executor = input_->make_executor(queue);
  return run(*make_evaluator(input_->model, settings, {executor.get(), &queue.pool(), &comm}), stream, {});
}

ScoreLedger AuditRuns::run_in_shares(std::span<const uint16_t> stream, int64_t ranks) {
  ScoreLedger whole = make_ledger(stream, settings_);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ScoreLedger share = make_ledger(stream, settings_);
    make_evaluator(input_->model, settings_, input_->context)->run_share(share, rank, ranks, {});
    whole.merge(share);
  }
  return whole;
}

std::vector<ScoreLedger> AuditRuns::run_together(std::span<const uint16_t> stream) {
  std::vector<ScoreLedger> ledgers(2, make_ledger(stream, settings_));
  ThreadRanks(2).run([&](Communicator& comm) {
    const bool first = comm.root();
    ledgers[static_cast<size_t>(comm.rank())] = run_by(comm, stream, first ? 1 : 3, first ? 3 : 1);
  });
  return ledgers;
}

Finding AuditRuns::future_dependence(const ScoreLedger& truth, int64_t cut, Mutation mutation) {
  const std::vector<uint16_t> changed = mutate(truth.stream(), cut, mutation, input_->model.recipe.model, input_->seed);
  return check_same_prefix(truth, run_for(changed, {1, cut}), cut);
}

Finding AuditRuns::target_dependence(const ScoreLedger& truth, int64_t target, uint16_t replacement) {
  std::vector<uint16_t> changed(truth.stream().begin(), truth.stream().end());
  changed[static_cast<size_t>(target)] = replacement;
  return check_same_distribution(truth, run_for(changed, {target, target + 1}), target);
}

}  // namespace fairway
