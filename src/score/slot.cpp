// Strictly causal SLOT (scoring spec §2.4). Window-local: an offset fitted on positions before the scored ones, whose targets
// lie in the prefix of every scored target, then thrown away. Carried: one offset learns from each segment after its score.
#include <algorithm>

#include "comm/share_bytes.h"
#include "score/evaluator.h"
#include "score/offset_evaluator.h"

namespace fairway {
namespace {

constexpr int64_t kLeastRows = 64;  // fewer positions than this leave the offset at zero

WindowShape slot_shape(const ScoreSettings& settings, const ScoreContext& context) {
  WindowShape shape = window_shape(settings, context);
  shape.raw = true;
  shape.rows = EvalRows::distributions;
  shape.before = settings.score.slot.carried ? 0 : std::min(settings.score.slot.positions, settings.score.context);
  return shape;
}

class SlotEvaluator final : public OffsetEvaluator {
 public:
  SlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : OffsetEvaluator(scored_model, score_settings, score_context, slot_shape(score_settings, score_context)) {}

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    if (context().comm->size() == 1) return OffsetEvaluator::run(ledger, progress);
    FAIRWAY_ASSERT(slot().carried, "offsets of windows are shared out by run_share()");
    run_in_turns(ledger, progress);
  }

 private:
  const SlotRecipe& slot() const { return settings().score.slot; }

  void finish_batch(ScoreLedger& ledger, const WindowBatch& batch) override {
    const WindowRunner& runner = *batch.runner;
    const std::span<const ScoreWindow> windows = batch.windows;
    for (size_t i = 0; i < windows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (!slot().carried) fit_before(ledger, at, windows[i], runner);
      score_shifted(ledger, at, windows[i], runner);
      if (slot().carried) fit_on(ledger.scored(windows[i].first, windows[i].end), ledger, at, windows[i], runner);
    }
  }

  // Ranks run the model on a batch of windows each, at the same time. Then the offset goes from rank to rank: each scores its
  // windows, fits on them and hands its records and the offset to all. Only the forward passes are shared out; they depend on
  // no state, while every fit needs the one before it.
  void run_in_turns(ScoreLedger& ledger, const ScoreProgress& progress) {
    Communicator& comm = *context().comm;
    start(ledger.stream());
    const WindowPlan plan = plan_of(ledger.targets());
    const int64_t count = plan.count(), at_once = batch(), ranks = comm.size();
    score_windows(ledger, 0, std::min<int64_t>(1, count), {});  // by every rank: nothing is learned from it
    std::vector<ScoreWindow> windows;
    for (int64_t round = 1; round < count; round += ranks * at_once) {
      const auto begin_of = [&](int64_t rank) { return std::min(count, round + rank * at_once); };
      const int64_t begin = begin_of(comm.rank()), end = begin_of(comm.rank() + 1);
      windows.clear();
      for (int64_t k = begin; k < end; ++k) windows.push_back(plan.at(k));
      const WindowBatch* own = windows.empty() ? nullptr : &forward(ledger, windows);
      for (int rank = 0; rank < ranks && begin_of(rank) < begin_of(rank + 1); ++rank)
        take_turn(ledger, plan.at(begin_of(rank)).first, plan.at(begin_of(rank + 1) - 1).end, rank, own);
      if (progress) progress(ledger.scored_count(), ledger.targets());
    }
  }

  // Rank `rank` scores targets [first, end), those of its windows.
  void take_turn(ScoreLedger& ledger, int64_t first, int64_t end, int rank, const WindowBatch* own) {
    Communicator& comm = *context().comm;
    ScoreLedger share = ledger.share(first, end, ledger.state_version());
    std::string records, state;
    if (rank == comm.rank()) {
      finish_batch(share, *own);
      records = share.share_bytes();
      state = offset().state();
    }
    share_bytes(comm, records, rank);
    share_bytes(comm, state, rank);
    if (rank != comm.rank()) {
      share = ledger.share(1, 1, 0);
      share.take_share_bytes(records);
      offset().take_state(state);
    }
    ledger.merge(share);
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
