// Strictly causal SLOT (scoring spec §2.4). Window-local: an offset fitted on positions before the scored ones, whose targets
// lie in the prefix of every scored target, then thrown away. Carried: one offset learns from each segment after its score.
#include <algorithm>

#include "score/offset_evaluator.h"

namespace fairway {
namespace {

constexpr int64_t kLeastRows = 64;  // fewer positions than this leave the offset at zero

WindowShape slot_shape(const ScoreSettings& settings) {
  WindowShape shape = window_shape(settings);
  shape.raw = true;
  shape.before = settings.score.slot.carried ? 0 : std::min(settings.score.slot.positions, settings.score.context);
  return shape;
}

class SlotEvaluator final : public OffsetEvaluator {
 public:
  SlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : OffsetEvaluator(scored_model, score_settings, score_context, slot_shape(score_settings)) {}

 private:
  const SlotRecipe& slot() const { return settings().score.slot; }

  void finish_batch(ScoreLedger& ledger, std::span<const ScoreWindow> windows, const WindowRunner& runner) override {
    for (size_t i = 0; i < windows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (!slot().carried) fit_before(ledger, at, windows[i], runner);
      score_shifted(ledger, at, windows[i], runner);
      if (slot().carried) fit_on(ledger.scored(windows[i].first, windows[i].end), ledger, at, windows[i], runner);
    }
  }

  void fit_before(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
    offset().reset();
    int64_t from = std::max<int64_t>(0, window.position() - slot().positions);  // a
    if (slot().same_document) from = std::max(from, document_start(ledger.stream(), window));
    if (window.position() - from < kLeastRows) return;
    fit_on(ledger.scored(window.start + from + 1, window.first), ledger, i, window, runner);
  }

  void fit_on(const ScoredTokens& tokens, ScoreLedger& ledger, int64_t i, const ScoreWindow& window,
              const WindowRunner& runner) {
    std::vector<SlotRow> rows;
    add_rows(rows, tokens, i, window, runner);
    fit(rows);
    ledger.updated(tokens, slot().carried ? UpdateScope::stream : UpdateScope::window);
  }

  // Position of the last document start among the inputs up to the first scored position.
  int64_t document_start(std::span<const uint16_t> stream, const ScoreWindow& window) const {
    for (int64_t position = window.position(); position > 0; --position)
      if (stream[static_cast<size_t>(window.start + position)] == model().recipe.model.bos) return position;
    return 0;
  }
};

}  // namespace

std::unique_ptr<Evaluator> make_slot_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                               const ScoreContext& context) {
  return std::make_unique<SlotEvaluator>(model, settings, context);
}

}  // namespace fairway
