// The hints of PR #1105 as published (scoring spec §2.7), over sliding windows: which expert speaks is told by the target
// itself. Each target is scored, then learned from, before the next one's hint is looked up; the audit must notice all the
// same.
#include "score/ngram_experts.h"
#include "score/windowed.h"

namespace fairway {
namespace {

WindowShape distributions_shape(const ScoreSettings& settings, const ScoreContext& context) {
  WindowShape shape = window_shape(settings, context);
  shape.rows = EvalRows::distributions;
  return shape;
}

class PublishedNgramEvaluator final : public WindowedEvaluator {
 public:
  PublishedNgramEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings,
                          const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context, distributions_shape(score_settings, score_context)),
        experts_(score_settings.score.ngram, model().bytes) {}

 private:
  void reset() override { experts_.clear(); }

  void score_window(ScoreLedger& ledger, int64_t i, const WindowBatch& batch) override {
    const ScoreWindow& window = batch.windows[static_cast<size_t>(i)];
    const WindowRunner& runner = *batch.runner;
    for (int64_t target = window.first; target < window.end; ++target) {
      const int64_t row = runner.row(i, window, target - 1 - window.start);
      const uint16_t token = ledger.stream()[static_cast<size_t>(target)];
      const Distribution tilted = runner.distribution(row).tilted({experts_.hint_seeing_target(token)});
      const TargetScore score = finish(tilted, runner.nll(row), token, ledger.captured(target));
      ledger.score(target, {&score, 1});
      const ScoredTokens scored = ledger.scored(target, target + 1);
      experts_.absorb(scored);
      ledger.updated(scored, UpdateScope::stream);
    }
  }

  PublishedExperts experts_;
};

}  // namespace

std::unique_ptr<Evaluator> make_published_ngram_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                          const ScoreContext& context) {
  return std::make_unique<PublishedNgramEvaluator>(model, settings, context);
}

}  // namespace fairway
