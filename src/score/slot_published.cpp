// Two forms of SLOT that break the rules, kept as negative controls (scoring spec §2.3). As published: one offset for a batch
// of windows, fitted on all their positions, the scored ones too. "Context only": one offset for the batch, fitted on the
// positions before each window's scored ones, which are scored positions of the windows before it.
#include <algorithm>

#include "score/slot_offset.h"
#include "score/windowed.h"

namespace fairway {
namespace {

constexpr int64_t kPublishedWindows = 32;
constexpr int64_t kMostLogits = int64_t{1} << 29;  // 2 GiB of them at a time

WindowShape shared_shape(const ScoreSettings& settings, const ScoredModel& model) {
  WindowShape shape = window_shape(settings);
  shape.raw = true;
  shape.before = shape.context;
  const int64_t fits = std::max<int64_t>(1, kMostLogits / (shape.context * model.recipe.model.vocab));
  shape.batch = std::min(settings.score.windows > 0 ? settings.score.windows : kPublishedWindows, fits);
  return shape;
}

class SharedSlotEvaluator final : public WindowedEvaluator {
 public:
  SharedSlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context, shared_shape(score_settings, scored_model)),
        offset_(params().bank("embed.token").value, scored_model.recipe.model.softcap, score_settings.score.slot.lr,
                *score_context.pool) {}

 private:
  void finish_batch(ScoreLedger& ledger, std::span<const ScoreWindow> windows, const WindowRunner& runner) override {
    const bool context_only = settings().control == NegativeControl::slot_shared_context;
    offset_.reset();
    std::vector<SlotRow> rows;
    int64_t last = windows.front().start + 1;
    for (size_t i = 0; i < windows.size(); ++i) {
      const ScoreWindow& window = windows[i];
      const int64_t end = context_only ? window.first : window.end;
      const ScoredTokens tokens = ledger.unsafe_for_negative_control(window.start + 1, end);
      for (int64_t n = 0; n < tokens.count(); ++n) {
        rows.push_back(
            {runner.logits(runner.row(static_cast<int64_t>(i), window, n)).data(), tokens.targets()[static_cast<size_t>(n)]});
      }
      last = std::max(last, end);
    }
    for (int64_t k = 0; k < settings().score.slot.steps; ++k) offset_.step(rows);
    ledger.updated(ledger.unsafe_for_negative_control(windows.front().start + 1, last), UpdateScope::stream);
    for (size_t i = 0; i < windows.size(); ++i) score(ledger, static_cast<int64_t>(i), windows[i], runner);
  }

  void score(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
    std::vector<TargetScore> scores;
    for (int64_t target = window.first; target < window.end; ++target) {
      const int64_t row = runner.row(i, window, target - 1 - window.start);
      scores.push_back(
          offset_.score({runner.logits(row).data(), ledger.stream()[static_cast<size_t>(target)]}, ledger.captured(target)));
    }
    ledger.score(window.first, scores);
  }

  SlotOffset offset_;
};

}  // namespace

std::unique_ptr<Evaluator> make_shared_slot_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                      const ScoreContext& context) {
  return std::make_unique<SharedSlotEvaluator>(model, settings, context);
}

}  // namespace fairway
