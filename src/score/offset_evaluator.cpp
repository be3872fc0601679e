#include "score/offset_evaluator.h"

namespace fairway {

OffsetEvaluator::OffsetEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings,
                                 const ScoreContext& score_context, const WindowShape& shape)
    : WindowedEvaluator(scored_model, score_settings, score_context, shape),
      offset_(params().bank(ParamId::embed_token).value, scored_model.recipe.model.softcap, score_settings.score.slot.lr,
              *score_context.pool) {}

void OffsetEvaluator::add_rows(std::vector<SlotRow>& rows, const ScoredTokens& tokens, int64_t i, const ScoreWindow& window,
                               const WindowRunner& runner) {
  for (int64_t n = 0; n < tokens.count(); ++n) {
    const int64_t position = tokens.begin() + n - 1 - window.start;
    rows.push_back({runner.logits(runner.row(i, window, position)).data(), tokens.targets()[static_cast<size_t>(n)]});
  }
}

void OffsetEvaluator::fit(std::span<const SlotRow> rows) {
  for (int64_t k = 0; k < settings().score.slot.steps; ++k) offset_.step(rows);
}

void OffsetEvaluator::score_shifted(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
  std::vector<TargetScore> scores(static_cast<size_t>(window.count()));
  context().pool->parallel_for(window.count(), [&](int64_t n) {
    const int64_t target = window.first + n;
    const SlotRow row{runner.logits(runner.row(i, window, window.position() + n)).data(),
                      ledger.stream()[static_cast<size_t>(target)]};
    scores[static_cast<size_t>(n)] = offset_.score(row, hints().of(target), ledger.captured(target));
  });
  ledger.score(window.first, scores);
}

}  // namespace fairway
