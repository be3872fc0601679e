// Two forms of SLOT that break the rules, kept as negative controls (scoring spec §2.3). As published: one offset for a batch
// of windows, fitted on all their positions, the scored ones too. "Context only": one offset for the batch, fitted on the
// positions before each window's scored ones, which are scored positions of the windows before it.
#include <algorithm>

#include "score/slot_head.h"
#include "score/windowed.h"

namespace fairway {
namespace {

constexpr int64_t kPublishedWindows = 32;
constexpr int64_t kMostLogits = int64_t{1} << 29;  // 2 GiB of them at a time

FitRule shared_rule(const ScoreSettings& settings) {
  const bool context_only = settings.control == NegativeControl::slot_shared_context;
  return [context_only](std::span<const uint16_t>, const ScoreWindow& window) {
    return FitRange{0, window.position() + (context_only ? 0 : window.count())};
  };
}

WindowShape shared_shape(const ScoreSettings& settings, const ScoredModel& model, const ScoreContext& context) {
  WindowShape shape = window_shape(settings, context);
  shape.before = shape.context;
  const int64_t fits = std::max<int64_t>(1, kMostLogits / (shape.context * model.recipe.model.vocab));
  shape.batch = std::min(settings.score.windows > 0 ? settings.score.windows : kPublishedWindows, fits);
  shape.head = slot_heads(model, settings.score.slot, {.fitted = shared_rule(settings), .shared = true},
                          std::make_shared<SlotState>(1, model.recipe.model.dim));
  return shape;
}

class SharedSlotEvaluator final : public WindowedEvaluator {
 public:
  SharedSlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context,
                          shared_shape(score_settings, scored_model, score_context)),
        rule_(shared_rule(score_settings)) {}

 private:
  void finish_batch(ScoreLedger& ledger, const WindowBatch& batch) override {
    const int64_t first = batch.windows.front().start + 1;
    int64_t last = first;
    for (const ScoreWindow& window : batch.windows) last = std::max(last, window.start + rule_(ledger.stream(), window).to + 1);
    ledger.updated(ledger.unsafe_for_negative_control(first, last), UpdateScope::stream);
    WindowedEvaluator::finish_batch(ledger, batch);
  }

  FitRule rule_;
};

}  // namespace

std::unique_ptr<Evaluator> make_shared_slot_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                      const ScoreContext& context) {
  return std::make_unique<SharedSlotEvaluator>(model, settings, context);
}

}  // namespace fairway
