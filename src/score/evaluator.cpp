#include "score/evaluator.h"

#include <fmt/core.h>

namespace fairway {

bool is_legal(const ScoreSettings& settings) {
  const ScoreRecipe& score = settings.score;
  const bool sorted = score.mode.base == ScoreMode::lora_ttt && score.lora.order == LoraOrder::compat;
  return settings.control == NegativeControl::none && keeps_rules(score.mode.base) && !sorted;
}

bool can_share(const ScoreSettings& settings) {
  if (settings.control != NegativeControl::none) return false;
  switch (settings.score.mode.base) {
    case ScoreMode::plain:
    case ScoreMode::sliding: return true;
    case ScoreMode::slot: return !settings.score.slot.carried;
    default: return false;
  }
}

void Evaluator::run_share(ScoreLedger&, int64_t, int64_t, const ScoreProgress&) {
  FAIRWAY_ASSERT(false, "this mode's windows cannot be shared among ranks");
}

ScoreLedger make_ledger(std::span<const uint16_t> stream, const ScoreSettings& settings) {
  return is_legal(settings) ? ScoreLedger(stream) : ScoreLedger::unsafe_for_negative_control(stream);
}

std::unique_ptr<Evaluator> make_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                          const ScoreContext& context) {
  const ScoreRecipe& score = settings.score;
  if (score.mode.base != ScoreMode::plain && score.stride > score.context)
    throw InputError(fmt::format("a stride of {} exceeds the context of {}", score.stride, score.context));
  if (score.mode.slot && score.mode.base == ScoreMode::ttt && score.slot.carried)
    throw InputError("score.slot.carried = true: beside ttt every window has an offset of its own, none is carried");
  if (settings.control == NegativeControl::slot_shared_context) return make_shared_slot_evaluator(model, settings, context);
  switch (score.mode.base) {
    case ScoreMode::plain:
    case ScoreMode::sliding: return make_window_evaluator(model, settings, context);
    case ScoreMode::slot: return make_slot_evaluator(model, settings, context);
    case ScoreMode::ttt: return make_ttt_evaluator(model, settings, context);
    case ScoreMode::lora_ttt: return make_lora_evaluator(model, settings, context);
    case ScoreMode::ngram_published: return make_published_ngram_evaluator(model, settings, context);
    case ScoreMode::slot_published: return make_shared_slot_evaluator(model, settings, context);
  }
  FAIRWAY_ASSERT(false, "a mode without an evaluator");
}

}  // namespace fairway
