#include "audit/negative_controls.h"

#include <algorithm>

#include "audit/probes.h"
#include "audit/runs.h"
#include "base/rng.h"
#include "score/documents.h"

namespace fairway {
namespace {

constexpr int64_t kTries = 48;  // changed streams, after which a control has slipped through

// Cuts inside the scored part of windows, where a leak shows at once.
Finding find_future_leak(AuditRuns& runs, const ScoreLedger& truth, uint64_t seed) {
  Rng rng(seed, 10);
  for (int64_t i = 0; i < kTries; ++i) {
    const int64_t cut = 2 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(truth.targets() - 1)));
    if (const Finding found = runs.future_dependence(truth, cut, i % 2 == 0 ? Mutation::random : Mutation::deleted))
      return found;
  }
  return std::nullopt;
}

// Targets whose distribution is not that of honest windows: where the control did something, and so where it may leak.
std::vector<int64_t> touched_targets(const AuditInput& input, const ScoreLedger& truth) {
  ScoreSettings honest = input.settings;
  honest.score.mode = ScoreMode::sliding;
  honest.score.windows = 0;
  AuditRuns runs(input, honest);
  const ScoreLedger ledger = runs.run(input.stream);
  std::vector<int64_t> out;
  for (int64_t target = 1; target <= truth.targets(); ++target)
    if (truth.digest(target) != ledger.digest(target)) out.push_back(target);
  return out;
}

Finding find_target_leak(const AuditInput& input, AuditRuns& runs, const ScoreLedger& truth) {
  const std::vector<int64_t> touched = touched_targets(input, truth);
  Rng rng(input.seed, 11);
  for (int64_t i = 0; i < kTries && !touched.empty();) {
    const int64_t target = touched[rng.below(touched.size())];
    for (const uint16_t token : replacements(input.stream, target, input.model, input.seed)) {
      if (const Finding found = runs.target_dependence(truth, target, token)) return found;
      ++i;
    }
  }
  return std::nullopt;
}

// Controls that serve documents by their length need several of them: where the slice has few, starts are put in at uneven
// distances.
std::vector<uint16_t> with_documents(std::span<const uint16_t> stream, int64_t bos) {
  constexpr int64_t kDocuments = 12;
  std::vector<uint16_t> out(stream.begin(), stream.end());
  if (static_cast<int64_t>(document_ranges(stream, bos).size()) >= kDocuments) return out;
  const int64_t mean = std::max<int64_t>(1, static_cast<int64_t>(out.size()) / kDocuments);
  int64_t at = 0;
  for (int64_t k = 0; at < static_cast<int64_t>(out.size()); ++k) {
    out[static_cast<size_t>(at)] = static_cast<uint16_t>(bos);
    at += 1 + mean / 2 + mean * (k % 5) / 4;
  }
  return out;
}

}  // namespace

std::vector<ControlCase> control_cases() {
  return {{"slot-published", ScoreMode::slot_published, NegativeControl::none, "T2"},
          {"slot with a context shared by a batch", ScoreMode::slot, NegativeControl::slot_shared_context, "T2"},
          {"ngram-published", ScoreMode::ngram_published, NegativeControl::none, "T3"},
          {"ttt that trains first", ScoreMode::ttt, NegativeControl::ttt_train_first, "T5"},
          {"ttt longest documents first", ScoreMode::ttt, NegativeControl::ttt_length_sorted, "T2"},
          {"mask off by one", ScoreMode::sliding, NegativeControl::shifted_mask, "T3"},
          {"tail windows counted again", ScoreMode::sliding, NegativeControl::double_count, "T1"}};
}

Finding catch_control(const AuditInput& audited, const ControlCase& control) {
  AuditInput input = audited;
  input.stream = with_documents(audited.stream, audited.model.recipe.model.bos);
  ScoreSettings settings = input.settings;
  settings.score.mode = control.mode;
  settings.score.windows = 0;
  settings.control = control.control;
  AuditRuns runs(input, settings);
  const ScoreLedger truth = runs.run(input.stream);
  if (control.test == "T1") return check_coverage(truth);
  if (control.test == "T5") return check_update_order(truth);
  return control.test == "T2" ? find_future_leak(runs, truth, input.seed) : find_target_leak(input, runs, truth);
}

ControlReport run_negative_controls(const AuditInput& input, const AuditProgress& progress) {
  ControlReport report;
  for (const ControlCase& control : control_cases()) {
    const bool caught = catch_control(input, control).has_value();
    std::string& list = caught ? report.caught : report.missed;
    list += (list.empty() ? "" : ", ") + control.name + (caught ? " by " : " not by ") + control.test;
    if (progress) progress("T10 " + control.name);
  }
  return report;
}

}  // namespace fairway
