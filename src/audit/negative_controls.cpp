#include "audit/negative_controls.h"

#include <algorithm>

#include "audit/probes.h"
#include "audit/runs.h"
#include "base/rng.h"

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

Finding find_target_leak(const AuditInput& input, AuditRuns& runs, const ScoreLedger& truth) {
  Rng rng(input.seed, 11);
  for (int64_t i = 0; i < kTries;) {
    const int64_t target = 1 + static_cast<int64_t>(rng.below(static_cast<uint64_t>(truth.targets())));
    for (const uint16_t token : replacements(input.stream, target, input.model, input.seed)) {
      if (const Finding found = runs.target_dependence(truth, target, token)) return found;
      ++i;
    }
  }
  return std::nullopt;
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

Finding catch_control(const AuditInput& input, const ControlCase& control) {
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
