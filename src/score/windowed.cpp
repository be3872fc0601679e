#include "score/windowed.h"

#include <algorithm>

#include "base/clock.h"
#include "base/rng.h"
#include "score/merge_shares.h"

namespace fairway {
namespace {

constexpr int64_t kTokensAtOnce = 4096;  // keeps a batch's activations near the cache

int64_t stride_of(const ScoreSettings& settings) {
  return settings.score.mode.base == ScoreMode::plain ? settings.score.context : settings.score.stride;
}

}  // namespace

double seconds_of(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

int64_t windows_at_once(const ScoreRecipe& score) {
  return score.windows > 0 ? score.windows : std::max<int64_t>(1, kTokensAtOnce / score.context);
}

TiltHints hints_for(const ScoreRecipe& score, std::span<const uint16_t> stream, ThreadPool& pool) {
  return score.mode.tilt ? TiltHints(score.ngram, stream, pool) : TiltHints();
}

double seconds_for_hints(const ScoreRecipe& score, int64_t targets, int64_t vocab, ThreadPool& pool) {
  if (!score.mode.tilt) return 0;
  constexpr int64_t kTimed = int64_t{1} << 18;
  Rng rng(1);
  std::vector<uint16_t> stream(static_cast<size_t>(kTimed));
  for (uint16_t& token : stream) token = static_cast<uint16_t>(rng.below(static_cast<uint64_t>(vocab)));
  return seconds_of([&] { hints_for(score, stream, pool); }) * static_cast<double>(targets) / static_cast<double>(kTimed);
}

WindowShape window_shape(const ScoreSettings& settings) {
  return {.context = settings.score.context,
          .scored = stride_of(settings),
          .batch = windows_at_once(settings.score),
          .documents = settings.score.documents};
}

WindowedEvaluator::WindowedEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context,
                                     const WindowShape& rest, ParamStore::Gradients gradients)
    : model_(model),
      settings_(settings),
      context_(context),
      params_(std::make_shared<ParamStore>(parameter_table(model.recipe), gradients)),
      stride_(rest.scored),
      rest_(std::make_unique<WindowRunner>(model, params_, rest, context)) {
  if (stride_ == rest.context && !rest.raw) return;
  WindowShape whole = rest;
  whole.scored = rest.context;
  whole.batch = 1;
  whole.raw = false;
  first_ = std::make_unique<WindowRunner>(model, params_, whole, context);
}

WindowPlan WindowedEvaluator::plan_of(int64_t targets) const { return {targets, settings_.score.context, stride_}; }

void WindowedEvaluator::start(std::span<const uint16_t> stream) {
  cost_ = {};
  model_.load(*params_);
  context_.executor->upload(params_->flat_values());
  hints_ = hints_for(settings_.score, stream, *context_.pool);
  reset();
}

void WindowedEvaluator::count_forward(const ScoreCost::Part& part) {
  cost_.forward.tokens += part.tokens;
  cost_.forward.seconds += part.seconds;
}

void WindowedEvaluator::count_learning(const ScoreCost::Part& part) {
  cost_.learning.tokens += part.tokens;
  cost_.learning.seconds += part.seconds;
}

void WindowedEvaluator::run(ScoreLedger& ledger, const ScoreProgress& progress) {
  start(ledger.stream());
  score_windows(ledger, 0, plan_of(ledger.targets()).count(), progress);
  if (settings_.control == NegativeControl::double_count) score_tail_again(ledger);
}

void WindowedEvaluator::run_share(ScoreLedger& ledger, int64_t rank, int64_t ranks, const ScoreProgress& progress) {
  FAIRWAY_ASSERT(can_share(settings_), "this mode's windows cannot be shared among ranks");
  start(ledger.stream());
  const WindowPlan plan = plan_of(ledger.targets());
  const WindowShare share = share_of_windows(plan.count(), rank, ranks);
  const auto first_of = [&](int64_t window) { return window < plan.count() ? plan.at(window).first : ledger.targets() + 1; };
  ledger.take_share(first_of(share.begin), first_of(share.end), 0);
  score_windows(ledger, share.begin, share.end, progress);
}

WindowRunner& WindowedEvaluator::forward(std::span<const uint16_t> stream, std::span<const ScoreWindow> windows) {
  WindowRunner& runner = windows.front().start == 0 && first_ ? *first_ : *rest_;
  const double seconds = seconds_of([&] { runner.run(stream, windows); });
  count_forward({runner.batch() * settings_.score.context, seconds});
  return runner;
}

void WindowedEvaluator::score_windows(ScoreLedger& ledger, int64_t begin, int64_t end, const ScoreProgress& progress) {
  const WindowPlan plan = plan_of(ledger.targets());
  std::vector<ScoreWindow> batch;
  for (int64_t k = begin; k < end;) {
    const bool alone = k == 0 && first_;
    const int64_t count = alone ? 1 : std::min(rest_->batch(), end - k);
    batch.clear();
    for (int64_t i = 0; i < count; ++i) batch.push_back(plan.at(k + i));
    const WindowRunner& runner = forward(ledger.stream(), batch);
    if (alone) {
      score_window(ledger, 0, batch.front(), runner);
    } else {
      finish_batch(ledger, batch, runner);
    }
    k += count;
    if (progress) progress(ledger.scored_count(), ledger.targets());
  }
}

void WindowedEvaluator::score_together(ScoreLedger& ledger, int64_t begin, int64_t end, const ScoreProgress& progress) {
  Communicator& comm = *context_.comm;
  if (comm.size() == 1) return score_windows(ledger, begin, end, progress);
  const WindowPlan plan = plan_of(ledger.targets());
  const WindowShare share = share_of_windows(end - begin, comm.rank(), comm.size());
  const auto first_of = [&](int64_t k) { return k < plan.count() ? plan.at(k).first : ledger.targets() + 1; };
  ScoreLedger own = ledger.share(first_of(begin + share.begin), first_of(begin + share.end), ledger.state_version());
  score_windows(own, begin + share.begin, begin + share.end, {});
  merge_shares(ledger, own, comm);
  if (progress) progress(ledger.scored_count(), ledger.targets());
}

void WindowedEvaluator::finish_batch(ScoreLedger& ledger, std::span<const ScoreWindow> windows, const WindowRunner& runner) {
  for (size_t i = 0; i < windows.size(); ++i) score_window(ledger, static_cast<int64_t>(i), windows[i], runner);
}

void WindowedEvaluator::score_window(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner) {
  if (runner.losses_only()) {
    std::vector<TargetScore> scores;
    for (int64_t n = 0; n < window.count(); ++n)
      scores.push_back({static_cast<float>(runner.nll(runner.row(i, window, window.position() + n)))});
    return ledger.score(window.first, scores);
  }
  score_rows(ledger, window, [&](int64_t position) {
    const int64_t row = runner.row(i, window, position);
    return std::pair(runner.distribution(row), runner.nll(row));
  });
}

void WindowedEvaluator::score_rows(ScoreLedger& ledger, const ScoreWindow& window, const RowAt& row) {
  std::vector<TargetScore> scores(static_cast<size_t>(window.count()));
  constexpr int64_t kRowsPerTask = 16;
  context_.pool->parallel_for((window.count() + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task) {
    for (int64_t n = task * kRowsPerTask; n < std::min(window.count(), (task + 1) * kRowsPerTask); ++n) {
      const int64_t target = window.first + n;
      const auto [distribution, nll] = row(window.position() + n);
      scores[static_cast<size_t>(n)] = finish(distribution.tilted(hints_.of(target)), nll,
                                              ledger.stream()[static_cast<size_t>(target)], ledger.captured(target));
    }
  });
  ledger.score(window.first, scores);
}

// The old enumeration (scoring spec §2.2): every start before the end of the stream is a window, and those that reach past it
// score its last S targets again.
void WindowedEvaluator::score_tail_again(ScoreLedger& ledger) {
  const int64_t targets = ledger.targets();
  for (int64_t k = plan_of(targets).count(); k * stride_ < targets; ++k) {
    const int64_t start = k * stride_;
    const ScoreWindow window{start, std::max(start, targets - stride_) + 1, targets + 1};
    rest_->run(ledger.stream(), {&window, 1});
    score_window(ledger, 0, window, *rest_);
  }
}

// Scores a made-up stream: the first batches allocate, those after them are timed, with all that the mode does to a window.
double WindowedEvaluator::estimate(int64_t targets) {
  constexpr int64_t kMostBatches = 16;
  constexpr double kEnoughSeconds = 0.3;
  const int64_t batch = rest_->batch(), before = 1 + batch;
  Rng rng(1);
  std::vector<uint16_t> stream(static_cast<size_t>(settings_.score.context + (batch + kMostBatches * batch) * stride_ + 1));
  for (uint16_t& token : stream) token = static_cast<uint16_t>(rng.below(static_cast<uint64_t>(model_.recipe.model.vocab)));
  start(stream);
  ScoreLedger ledger = make_ledger(stream, settings_);
  score_windows(ledger, 0, before, {});
  double seconds = 0;
  int64_t timed = 0;
  for (; timed < kMostBatches && seconds < kEnoughSeconds; ++timed)
    seconds += seconds_of([&] { score_windows(ledger, before + timed * batch, before + (timed + 1) * batch, {}); });
  return seconds / static_cast<double>(timed * batch) * static_cast<double>(plan_of(targets).count()) +
         seconds_for_hints(settings_.score, targets, model_.recipe.model.vocab, *context_.pool);
}

namespace {

// Plain rows are cut as training cut them, also where a document is longer than its segments (scoring spec §2.1); sliding
// windows are there to give every target as much context as they hold.
WindowShape stateless_shape(const ScoredModel& model, const ScoreSettings& settings) {
  WindowShape shape = window_shape(settings);
  if (settings.score.mode.base == ScoreMode::plain && packs_documents(model.recipe))
    shape.longest = model.recipe.data.max_segment;
  shape.losses_only = settings.losses_only && !settings.score.mode.tilt;
  return shape;
}

class WindowEvaluator final : public WindowedEvaluator {
 public:
  WindowEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context)
      : WindowedEvaluator(model, settings, context, stateless_shape(model, settings)) {}
};

}  // namespace

std::unique_ptr<Evaluator> make_window_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                 const ScoreContext& context) {
  return std::make_unique<WindowEvaluator>(model, settings, context);
}

}  // namespace fairway
