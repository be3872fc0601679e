// Two forms of SLOT that break the rules, kept as negative controls (scoring spec §2.3). As published: one offset for a batch
// of windows, fitted on all their positions, the scored ones too. "Context only": one offset for the batch, fitted on the
// positions before each window's scored ones, which are scored positions of the windows before it.
#include <algorithm>

#include "score/evaluator.h"
#include "score/offset_evaluator.h"

namespace fairway {
namespace {

constexpr int64_t kPublishedWindows = 32;
constexpr int64_t kMostLogits = int64_t{1} << 29;  // 2 GiB of them at a time

WindowShape shared_shape(const ScoreSettings& settings, const ScoredModel& model, const ScoreContext& context) {
  WindowShape shape = window_shape(settings, context);
  shape.raw = true;
  shape.rows = EvalRows::distributions;
  shape.before = shape.context;
  const int64_t fits = std::max<int64_t>(1, kMostLogits / (shape.context * model.recipe.model.vocab));
  shape.batch = std::min(settings.score.windows > 0 ? settings.score.windows : kPublishedWindows, fits);
  return shape;
}

class SharedSlotEvaluator final : public OffsetEvaluator {
 public:
  SharedSlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : OffsetEvaluator(scored_model, score_settings, score_context,
                        shared_shape(score_settings, scored_model, score_context)) {}

 private:
  void finish_batch(ScoreLedger& ledger, const WindowBatch& batch) override {
    const WindowRunner& runner = *batch.runner;
    const std::span<const ScoreWindow> windows = batch.windows;
    const bool context_only = settings().control == NegativeControl::slot_shared_context;
    offset().reset();
    std::vector<SlotRow> rows;
    const int64_t first = windows.front().start + 1;
    int64_t last = first;
    for (size_t i = 0; i < windows.size(); ++i) {
      const int64_t end = context_only ? windows[i].first : windows[i].end;
      const ScoredTokens tokens = ledger.unsafe_for_negative_control(windows[i].start + 1, end);
      add_rows(rows, tokens, static_cast<int64_t>(i), windows[i], runner);
      last = std::max(last, end);
    }
    fit(rows);
    ledger.updated(ledger.unsafe_for_negative_control(first, last), UpdateScope::stream);
    for (size_t i = 0; i < windows.size(); ++i) score_shifted(ledger, static_cast<int64_t>(i), windows[i], runner);
  }
};

}  // namespace

std::unique_ptr<Evaluator> make_shared_slot_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                      const ScoreContext& context) {
  return std::make_unique<SharedSlotEvaluator>(model, settings, context);
}

}  // namespace fairway
