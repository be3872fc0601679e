// Strictly causal SLOT (scoring spec §2.4). Window-local: an offset fitted on positions before the scored ones, whose targets
// lie in the prefix of every scored target, then thrown away. Carried: an offset learns from each segment after its score; it
// begins anew with each lane of windows. Lanes have a set length, so that where one begins is told by the text before it alone;
// they know nothing of one another and run side by side.
#include <algorithm>

#include "score/merge_shares.h"
#include "score/slot_head.h"
#include "score/windowed.h"

namespace fairway {
namespace {

FitRule fit_rule(const SlotRecipe& slot, int64_t bos) {
  if (slot.carried)
    return [](std::span<const uint16_t>, const ScoreWindow& window) {
      return FitRange{window.position(), window.position() + window.count()};
    };
  return fit_before_scores(slot, bos);
}

// One of the runs of windows that an offset is carried along.
struct Lane {
  int64_t begin = 0, end = 0;  // windows
  ScoreLedger ledger;          // its share
};

class SlotEvaluator final : public WindowedEvaluator {
 public:
  SlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context)
      : SlotEvaluator(scored_model, score_settings, score_context, window_shape(score_settings, score_context),
                      fit_rule(score_settings.score.slot, scored_model.recipe.model.bos)) {}

  void run(ScoreLedger& ledger, const ScoreProgress& progress) override {
    if (!slot().carried) return WindowedEvaluator::run(ledger, progress);
    start(ledger.stream());
    const WindowPlan plan = plan_of(ledger.targets());
    const int64_t count = plan.count();
    score_windows(ledger, 0, std::min<int64_t>(1, count), {});  // by every rank: nothing is learned from it
    const int64_t lanes = (std::max<int64_t>(count, 1) - 1 + slot().lane - 1) / slot().lane;
    const WindowShare mine = share_of_windows(lanes, context().comm->rank(), context().comm->size());
    const auto first_of = [&](int64_t lane) { return std::min(count, 1 + lane * slot().lane); };
    const auto target_of = [&](int64_t k) { return k < count ? plan.at(k).first : ledger.targets() + 1; };
    ScoreLedger own = ledger.share(target_of(first_of(mine.begin)), target_of(first_of(mine.end)),
                                   static_cast<int32_t>(first_of(mine.begin) - 1));
    for (int64_t lane = mine.begin; lane < mine.end; lane += batch()) {
      std::vector<Lane> open;
      for (int64_t n = lane; n < std::min(mine.end, lane + batch()); ++n) {
        const int64_t begin = first_of(n), end = first_of(n + 1);
        open.push_back({begin, end, ledger.share(target_of(begin), target_of(end), static_cast<int32_t>(begin - 1))});
      }
      run_lanes(open, plan);
      for (const Lane& done : open) own.merge(done.ledger);
      if (progress) progress(std::min(ledger.targets(), ledger.scored_count() + own.scored_count()), ledger.targets());
    }
    context().comm->size() == 1 ? ledger.merge(own) : merge_shares(ledger, own, *context().comm);
  }

  // Lanes that are fewer than a batch holds leave places of it empty.
  double estimate(int64_t targets) override {
    const double full = WindowedEvaluator::estimate(targets);
    if (!slot().carried) return full;
    const int64_t lanes = (plan_of(targets).count() + slot().lane - 1) / slot().lane;
    return full * std::max(1.0, static_cast<double>(batch()) / static_cast<double>(std::max<int64_t>(1, lanes)));
  }

 private:
  SlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context,
                WindowShape shape, const FitRule& rule)
      : SlotEvaluator(scored_model, score_settings, score_context, shape, rule,
                      std::make_shared<SlotState>(shape.batch, scored_model.recipe.model.dim)) {}
  SlotEvaluator(const ScoredModel& scored_model, const ScoreSettings& score_settings, const ScoreContext& score_context,
                WindowShape shape, const FitRule& rule, const std::shared_ptr<SlotState>& state)
      : WindowedEvaluator(scored_model, score_settings, score_context,
                          with_offsets(shape, scored_model, score_settings.score,
                                       {.fitted = rule, .carried = score_settings.score.slot.carried}, state)),
        rule_(rule),
        state_(state) {
    Tape tape;
    tape.scope("new offsets");
    for (const Tensor& part : {state->offset, state->m, state->v}) tape.call(Fill{}, {tape.input("offset", part)});
    begin_ = context().executor->open(std::move(tape).finish());
  }

  const SlotRecipe& slot() const { return settings().score.slot; }
  void reset() override { set_taken(0); }
  void set_taken(int64_t steps) {
    *state_->taken.as<int32_t>() = static_cast<int32_t>(steps);
    context().executor->upload(state_->taken);
  }

  // The program has fitted already; the ledger sees to it that what was fitted on had its score before it was used.
  void finish_batch(ScoreLedger& ledger, const WindowBatch& batch) override {
    for (size_t i = 0; i < batch.windows.size(); ++i) finish_window(ledger, static_cast<int64_t>(i), batch);
  }
  void finish_window(ScoreLedger& ledger, int64_t i, const WindowBatch& batch) {
    const ScoreWindow& window = batch.windows[static_cast<size_t>(i)];
    const FitRange range = rule_(ledger.stream(), window);
    if (slot().carried) {
      score_window(ledger, i, batch);
      ledger.updated(ledger.scored(window.start + range.from + 1, window.start + range.to + 1), UpdateScope::stream);
    } else {
      tell_fit(ledger, range, window);
      score_window(ledger, i, batch);
    }
  }

  // All at the same place of their lanes; only the last may be shorter. The state stays where the model runs, so that the next
  // windows may go there before these are scored.
  void run_lanes(std::vector<Lane>& lanes, const WindowPlan& plan) {
    begin_->run();
    WindowBatch* running = nullptr;
    const auto settle = [&] {
      if (running == nullptr) return;
      await(*running);
      for (size_t i = 0; i < running->windows.size(); ++i) finish_window(lanes[i].ledger, static_cast<int64_t>(i), *running);
      running = nullptr;
    };
    std::vector<ScoreWindow> windows;
    for (int64_t at = 0; at < lanes.front().end - lanes.front().begin; ++at) {
      windows.clear();
      for (const Lane& lane : lanes)
        if (lane.begin + at < lane.end) windows.push_back(plan.at(lane.begin + at));
      set_taken(at * slot().steps);
      WindowBatch& next = ask(lanes_rows(lanes, windows), lanes.front().ledger.stream(), windows);
      settle();
      running = &next;
      if (next.runner->tells_distributions()) settle();
    }
    settle();
  }

  // Whole distributions where one of the lanes' ledgers keeps one.
  EvalRows lanes_rows(const std::vector<Lane>& lanes, std::span<const ScoreWindow> windows) const {
    for (size_t i = 0; i < windows.size(); ++i)
      if (const EvalRows rows = rows_for(lanes[i].ledger, windows.subspan(i, 1)); rows == EvalRows::distributions) return rows;
    return rows_for(lanes.front().ledger, {});
  }

  FitRule rule_;
  std::shared_ptr<SlotState> state_;
  std::unique_ptr<Session> begin_;  // offsets at zero
};

}  // namespace

std::unique_ptr<Evaluator> make_slot_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                               const ScoreContext& context) {
  return std::make_unique<SlotEvaluator>(model, settings, context);
}

}  // namespace fairway
