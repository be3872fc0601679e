// Test-time training by chunks (scoring spec §2.5): score all windows of a chunk, then learn from it; weights and momentum go
// on for the whole stream. A window belongs to the chunk of its first scored position. Ranks go through the chunks in step:
// they share a chunk's windows, exchange the scores, then share the sequences that are learned; nobody learns before all have
// scored.
#include <algorithm>

#include "score/learner.h"
#include "score/windowed.h"

namespace fairway {
namespace {

class TttEvaluator final : public WindowedEvaluator {
 public:
  TttEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context, window_shape(score_settings),
                          ParamStore::Gradients::kept),
        learner_(scored_model, shared_params(), score_settings.score, score_context) {}

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    start();
    const bool train_first = settings().control == NegativeControl::ttt_train_first;
    const int64_t windows = plan_of(ledger.targets()).count();
    int64_t next = 0;
    for (int64_t chunk = 0; next < windows; ++chunk) {
      const int64_t end = first_window_after(ledger.targets(), (chunk + 1) * ttt().chunk, next, windows);
      if (train_first) learn(ledger, chunk);
      score_together(ledger, next, end, progress);
      if (!train_first) learn(ledger, chunk);
      next = end;
    }
  }

  double estimate(int64_t targets) override {
    const double sequences = static_cast<double>(targets) / static_cast<double>(settings().score.context);
    return WindowedEvaluator::estimate(targets) +
           sequences * static_cast<double>(ttt().epochs) * learner_.seconds_per_sequence();
  }

 private:
  const TttRecipe& ttt() const { return settings().score.ttt; }
  void reset() override { learner_.reset(); }

  int64_t first_window_after(int64_t targets, int64_t input, int64_t from, int64_t windows) const {
    const WindowPlan plan = plan_of(targets);
    while (from < windows && plan.at(from).first - 1 < input) ++from;
    return from;
  }

  void learn(ScoreLedger& ledger, int64_t chunk) {
    const int64_t scheduled = settings().schedule_targets > 0 ? settings().schedule_targets : ledger.targets();
    const int64_t chunks = (scheduled + ttt().chunk - 1) / ttt().chunk;
    if (chunk + 1 >= chunks) return;
    const int64_t length = settings().score.context, begin = chunk * ttt().chunk;
    const int64_t sequences = (std::min(begin + ttt().chunk, ledger.targets()) - begin) / length;
    if (sequences <= 0) return;
    const int64_t first = begin + 1, end = first + sequences * length;
    const ScoredTokens tokens = settings().control == NegativeControl::ttt_train_first
                                    ? ledger.unsafe_for_negative_control(first, end)
                                    : ledger.scored(first, end);
    int64_t learned = 0;
    const double seconds = seconds_of([&] { learned = learner_.learn(tokens, cosine_rate(ttt().lr, chunk, chunks)); });
    count_learning({learned, seconds});
    ledger.updated(tokens, UpdateScope::stream);
  }

  ChunkLearner learner_;
};

}  // namespace

std::unique_ptr<Evaluator> make_ttt_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                              const ScoreContext& context) {
  return std::make_unique<TttEvaluator>(model, settings, context);
}

}  // namespace fairway
