// Test-time training by chunks (scoring spec §2.5): score all windows of a chunk, then learn from it; weights and momentum go
// on for the whole stream. A window belongs to the chunk of its first scored position. Ranks go through the chunks in step:
// they share a chunk's windows, exchange the scores, then share the sequences that are learned; nobody learns before all have
// scored. With +slot every window has an offset of its own besides, fitted under the weights as they are.
#include <algorithm>

#include "score/learner.h"
#include "score/slot_head.h"
#include "score/windowed.h"

namespace fairway {
namespace {

class TttEvaluator final : public WindowedEvaluator {
 public:
  TttEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : WindowedEvaluator(scored_model, score_settings, score_context, shape_of(scored_model, score_settings, score_context),
                          ParamStore::Gradients::kept),
        fitted_(fit_before_scores(score_settings.score.slot, scored_model.recipe.model.bos)),
        learner_(scored_model, shared_params(), score_settings.score, score_context) {}

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    start(ledger.stream());
    const bool train_first = settings().control == NegativeControl::ttt_train_first;
    const int64_t windows = plan_of(ledger.targets()).count();
    int64_t next = 0;
    for (int64_t chunk = 0; next < windows && chunk * ttt().chunk + 1 < ledger.wanted().end; ++chunk) {
      const int64_t end = first_window_after(ledger.targets(), (chunk + 1) * ttt().chunk, next, windows);
      const Lesson lesson = lesson_of(ledger, chunk);
      if (train_first) {
        learn(ledger, lesson);
        score_windows(ledger, next, end, progress);
      } else {
        score_chunk(ledger, lesson, next, end, progress);
        learn(ledger, lesson);
      }
      next = end;
    }
  }

  double estimate(int64_t targets) override {
    const double sequences = static_cast<double>(targets) / static_cast<double>(settings().score.context);
    return WindowedEvaluator::estimate(targets) +
           sequences * static_cast<double>(ttt().epochs) * learner_.seconds_per_sequence();
  }

 private:
  static WindowShape shape_of(const ScoredModel& scored_model, const ScoreSettings& settings, const ScoreContext& context) {
    const WindowShape shape = window_shape(settings, context);
    if (!settings.score.mode.slot) return shape;
    return with_offsets(shape, scored_model, settings.score,
                        {.fitted = fit_before_scores(settings.score.slot, scored_model.recipe.model.bos)},
                        std::make_shared<SlotState>(shape.batch, scored_model.recipe.model.dim));
  }

  const TttRecipe& ttt() const { return settings().score.ttt; }
  bool fits_offsets() const { return settings().score.mode.slot; }
  void reset() override { learner_.reset(); }

  void finish_batch(ScoreLedger& ledger, const WindowBatch& batch) override {
    for (size_t i = 0; i < batch.windows.size(); ++i) {
      if (fits_offsets()) tell_fit(ledger, fitted_(ledger.stream(), batch.windows[i]), batch.windows[i]);
      score_window(ledger, static_cast<int64_t>(i), batch);
    }
  }

  int64_t first_window_after(int64_t targets, int64_t input, int64_t from, int64_t windows) const {
    const WindowPlan plan = plan_of(targets);
    while (from < windows && plan.at(from).first - 1 < input) ++from;
    return from;
  }

  // What is learned from a chunk: whole sequences from its first input on.
  struct Lesson {
    int64_t begin = 0, sequences = 0;  // none for the last chunk
    double learning_rate = 0;
  };
  Lesson lesson_of(const ScoreLedger& ledger, int64_t chunk) const {
    const int64_t scheduled = settings().schedule_targets > 0 ? settings().schedule_targets : ledger.targets();
    const int64_t chunks = (scheduled + ttt().chunk - 1) / ttt().chunk, begin = chunk * ttt().chunk;
    if (chunk + 1 >= chunks) return {};
    const int64_t targets = std::max<int64_t>(0, std::min(begin + ttt().chunk, ledger.targets()) - begin);
    return {begin, targets / settings().score.context, cosine_rate(ttt().lr, chunk, chunks)};
  }

  // Windows that begin where a sequence does are scored from the forward pass that the first step needs anyway.
  void score_chunk(ScoreLedger& ledger, const Lesson& lesson, int64_t next, int64_t end, const ScoreProgress& progress) {
    const int64_t length = settings().score.context, stride = settings().score.stride;
    int64_t prepared = 0;
    if (lesson.sequences > 0 && lesson.begin % stride == 0 && length % stride == 0 && !fits_offsets()) {
      const auto tokens =
          ledger.stream().subspan(static_cast<size_t>(lesson.begin), static_cast<size_t>(lesson.sequences * length + 1));
      const double seconds = seconds_of([&] { prepared = learner_.prepare(tokens); });
      count_forward({prepared * length, seconds});
    }
    if (prepared == 0) return score_together(ledger, next, end, progress);
    const WindowPlan plan = plan_of(ledger.targets());
    const auto sequence_at = [&](int64_t window) {  // −1: none
      const int64_t offset = window * stride - lesson.begin;
      return offset >= 0 && offset % length == 0 && offset / length < prepared ? offset / length : -1;
    };
    std::vector<ScoreWindow> others;
    for (int64_t k = next, stop = next; k < end; k = stop) {
      others.clear();
      for (; stop < end && (sequence_at(stop) >= 0 || static_cast<int64_t>(others.size()) < batch()); ++stop)
        if (sequence_at(stop) < 0) others.push_back(plan.at(stop));
      const WindowBatch* ran = others.empty() ? nullptr : &forward(ledger, others);
      for (int64_t window = k, i = 0; window < stop; ++window) {
        if (const int64_t sequence = sequence_at(window); sequence >= 0)
          score_sequence(ledger, sequence, plan.at(window));
        else
          score_window(ledger, i++, *ran);
      }
      if (progress) progress(ledger.scored_count(), ledger.targets());
    }
  }

  void score_sequence(ScoreLedger& ledger, int64_t sequence, const ScoreWindow& window) {
    score_rows(ledger, window, [&](int64_t position) {
      return std::pair(learner_.distribution(sequence, position), learner_.nll(sequence, position));
    });
  }

  void learn(ScoreLedger& ledger, const Lesson& lesson) {
    if (lesson.sequences == 0) return;
    const int64_t first = lesson.begin + 1, end = first + lesson.sequences * settings().score.context;
    const ScoredTokens tokens = settings().control == NegativeControl::ttt_train_first
                                    ? ledger.unsafe_for_negative_control(first, end)
                                    : ledger.scored(first, end);
    int64_t learned = 0;
    const double seconds = seconds_of([&] { learned = learner_.learn(tokens, lesson.learning_rate); });
    count_learning({learned, seconds});
    ledger.updated(tokens, UpdateScope::stream);
  }

  FitRule fitted_;
  ChunkLearner learner_;
};

}  // namespace

std::unique_ptr<Evaluator> make_ttt_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                              const ScoreContext& context) {
  return std::make_unique<TttEvaluator>(model, settings, context);
}

}  // namespace fairway
