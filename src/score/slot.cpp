// Strictly causal SLOT (scoring spec §2.4). Window-local: an offset fitted on positions before the scored ones, whose targets
// lie in the prefix of every scored target, then thrown away. Carried: one offset learns from each segment after its score.
#include <algorithm>

#include "score/slot_offset.h"
#include "score/windowed.h"

namespace fairway {
namespace {

constexpr int64_t kLeastRows = 64;  // fewer positions than this leave the offset at zero

WindowShape slot_shape(const ScoreSettings& settings) {
  WindowShape shape = window_shape(settings);
  shape.raw = true;
  shape.before = settings.score.slot.carried ? 0 : std::min(settings.score.slot.positions, settings.score.context);
  return shape;
}

class SlotEvaluator final : public WindowedEvaluator {
 public:
  SlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context, slot_shape(score_settings)),
        offset_(params().bank("embed.token").value, scored_model.recipe.model.softcap, score_settings.score.slot.lr,
                *score_context.pool) {}

 private:
  const SlotRecipe& slot() const { return settings().score.slot; }
  void reset() override { offset_.reset(); }

  void finish_batch(ScoreLedger& ledger, std::span<const ScoreWindow> windows, const WindowRunner& runner) override {
    for (size_t i = 0; i < windows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (!slot().carried) fit_before(ledger, at, windows[i], runner);
      score_segment(ledger, at, windows[i], runner);
      if (slot().carried) fit_after(ledger, at, windows[i], runner);
    }
  }

  // Rows of the window that predict the given tokens.
  std::vector<SlotRow> rows_of(const ScoredTokens& tokens, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
    std::vector<SlotRow> rows;
    for (int64_t n = 0; n < tokens.count(); ++n) {
      const int64_t position = tokens.begin() + n - 1 - window.start;
      rows.push_back({runner.logits(runner.row(i, window, position)).data(), tokens.targets()[static_cast<size_t>(n)]});
    }
    return rows;
  }

  void fit_before(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
    offset_.reset();
    int64_t from = std::max<int64_t>(0, window.position() - slot().positions);  // a
    if (slot().same_document) from = std::max(from, document_start(ledger.stream(), window));
    if (window.position() - from < kLeastRows) return;
    const ScoredTokens tokens = ledger.scored(window.start + from + 1, window.first);
    const std::vector<SlotRow> rows = rows_of(tokens, i, window, runner);
    for (int64_t k = 0; k < slot().steps; ++k) offset_.step(rows);
    ledger.updated(tokens, UpdateScope::window);
  }

  void fit_after(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
    const ScoredTokens tokens = ledger.scored(window.first, window.end);
    const std::vector<SlotRow> rows = rows_of(tokens, i, window, runner);
    for (int64_t k = 0; k < slot().steps; ++k) offset_.step(rows);
    ledger.updated(tokens, UpdateScope::stream);
  }

  // Position of the last document start among the inputs up to the first scored position.
  int64_t document_start(std::span<const uint16_t> stream, const ScoreWindow& window) const {
    for (int64_t position = window.position(); position > 0; --position)
      if (stream[static_cast<size_t>(window.start + position)] == model().recipe.model.bos) return position;
    return 0;
  }

  void score_segment(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
    std::vector<TargetScore> scores(static_cast<size_t>(window.count()));
    context().pool->parallel_for(window.count(), [&](int64_t n) {
      const int64_t target = window.first + n;
      const SlotRow row{runner.logits(runner.row(i, window, window.position() + n)).data(),
                        ledger.stream()[static_cast<size_t>(target)]};
      scores[static_cast<size_t>(n)] = offset_.score(row, ledger.captured(target));
    });
    ledger.score(window.first, scores);
  }

  SlotOffset offset_;
};

}  // namespace

std::unique_ptr<Evaluator> make_slot_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                               const ScoreContext& context) {
  return std::make_unique<SlotEvaluator>(model, settings, context);
}

}  // namespace fairway
