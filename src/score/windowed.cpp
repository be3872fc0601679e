#include "score/windowed.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "base/rng.h"
#include "score/merge_shares.h"

namespace fairway {
namespace {

constexpr int64_t kTokensAtOnce = 4096;      // keeps a batch's activations near the cache
constexpr int64_t kTokensOnDevice = 98'304;  // fills the card: a training step's

int64_t windows_at_once(const ScoreRecipe& score, const Executor& executor) {
  if (score.windows > 0) return score.windows;
  return std::max<int64_t>(1, (executor.on_device() ? kTokensOnDevice : kTokensAtOnce) / score.context);
}

int64_t stride_of(const ScoreSettings& settings) {
  return settings.score.mode.base == ScoreMode::plain ? settings.score.context : settings.score.stride;
}

}  // namespace

double seconds_of(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
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

WindowShape window_shape(const ScoreSettings& settings, const ScoreContext& context) {
  return {.context = settings.score.context,
          .scored = stride_of(settings),
          .batch = windows_at_once(settings.score, *context.executor),
          .documents = settings.score.documents,
          .damping = settings.score.mode.tilt ? std::optional(settings.score.ngram.damping) : std::nullopt};
}

WindowedEvaluator::WindowedEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context,
                                     const WindowShape& rest, ParamStore::Gradients gradients)
    : model_(model),
      settings_(settings),
      context_(context),
      params_(std::make_shared<ParamStore>(parameter_table(model.recipe), gradients)),
      shape_(rest),
      batches_{WindowBatch(*context.executor), WindowBatch(*context.executor)} {
  // Half of what is free: other programs, and other ranks on the card, need some too.
  while (shape_.batch > 1 &&
         runner_for(false, shape_.batch, shape_.rows).planned_bytes() > context_.executor->free_bytes() / 2) {
    runners_.clear();
    shape_.batch /= 2;
  }
}

WindowPlan WindowedEvaluator::plan_of(int64_t targets) const { return {targets, shape_.context, shape_.scored}; }

// Fewer windows than a batch have a smaller program where that saves half of the work: no bit depends on it.
WindowRunner& WindowedEvaluator::runner_for(bool whole, int64_t windows, EvalRows rows) {
  const int64_t size = std::min(shape_.batch, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(windows))));
  std::unique_ptr<WindowRunner>& runner = runners_[{whole, size, rows}];
  if (runner) return *runner;
  WindowShape shape = shape_;
  shape.batch = size;
  shape.rows = rows;
  if (whole) {
    shape.scored = shape.context;
    shape.before = 0;
    shape.head = {};
  }
  runner = std::make_unique<WindowRunner>(model_, params_, shape, context_);
  return *runner;
}

// Whole distributions also where the ledger keeps one of them.
EvalRows WindowedEvaluator::rows_for(const ScoreLedger& ledger, std::span<const ScoreWindow> windows) const {
  for (const ScoreWindow& window : windows) {
    const auto captured = ledger.captures().lower_bound(window.first);
    if (captured != ledger.captures().end() && captured->first < window.end) return EvalRows::distributions;
  }
  return shape_.rows;
}

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

WindowBatch& WindowedEvaluator::ask(EvalRows rows, std::span<const uint16_t> stream, std::span<const ScoreWindow> windows) {
  WindowBatch& batch = batches_[asked_++ % batches_.size()];
  batch.windows.assign(windows.begin(), windows.end());
  batch.runner = &runner_for(batch.first() && first_is_whole(), static_cast<int64_t>(windows.size()), rows);
  const double seconds = seconds_of([&] { batch.runner->run(stream, hints_, windows, batch.records); });
  count_forward({batch.runner->batch() * shape_.context, seconds});
  return batch;
}

void WindowedEvaluator::await(WindowBatch& batch) {
  if (!batch.runner->tells_distributions()) count_forward({0, seconds_of([&] { batch.records.receive(); })});
}

WindowBatch& WindowedEvaluator::forward(ScoreLedger& ledger, std::span<const ScoreWindow> windows) {
  WindowBatch& batch = ask(rows_for(ledger, windows), ledger.stream(), windows);
  await(batch);
  return batch;
}

void WindowedEvaluator::settle(ScoreLedger& ledger, WindowBatch& batch, const ScoreProgress& progress) {
  await(batch);
  batch.first() && first_is_whole() ? score_window(ledger, 0, batch) : finish_batch(ledger, batch);
  if (progress) progress(ledger.scored_count(), ledger.targets());
}

// One batch ahead: the host scores a batch and prepares the next but one while the model runs.
void WindowedEvaluator::score_windows(ScoreLedger& ledger, int64_t begin, int64_t end, const ScoreProgress& progress) {
  const WindowPlan plan = plan_of(ledger.targets());
  std::vector<ScoreWindow> windows;
  WindowBatch* running = nullptr;
  for (int64_t k = begin; k < end;) {
    const int64_t count = k == 0 && first_is_whole() ? 1 : std::min(batch(), end - k);
    windows.clear();
    for (int64_t i = 0; i < count; ++i) windows.push_back(plan.at(k + i));
    WindowBatch& next = ask(rows_for(ledger, windows), ledger.stream(), windows);
    if (running != nullptr) settle(ledger, *running, progress);
    running = &next;
    if (next.runner->tells_distributions()) {  // they stay where the next run would write
      settle(ledger, next, progress);
      running = nullptr;
    }
    k += count;
  }
  if (running != nullptr) settle(ledger, *running, progress);
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

void WindowedEvaluator::finish_batch(ScoreLedger& ledger, const WindowBatch& batch) {
  for (size_t i = 0; i < batch.windows.size(); ++i) score_window(ledger, static_cast<int64_t>(i), batch);
}

void WindowedEvaluator::score_window(ScoreLedger& ledger, int64_t i, const WindowBatch& batch) {
  const ScoreWindow& window = batch.windows[static_cast<size_t>(i)];
  const auto row_of = [&](int64_t position) { return batch.runner->row(i, window, position); };
  if (batch.runner->tells_distributions())
    return score_rows(ledger, window, [&](int64_t position) {
      const int64_t row = row_of(position);
      return std::pair(batch.runner->distribution(row), batch.runner->nll(row));
    });
  std::vector<TargetScore> scores(static_cast<size_t>(window.count()));
  const int64_t first = row_of(window.position());
  for (size_t n = 0; n < scores.size(); ++n) scores[n] = batch.records.score(first + static_cast<int64_t>(n));
  ledger.score(window.first, scores);
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
  for (int64_t k = plan_of(targets).count(); k * shape_.scored < targets; ++k) {
    const int64_t start = k * shape_.scored;
    const ScoreWindow window{start, std::max(start, targets - shape_.scored) + 1, targets + 1};
    score_window(ledger, 0, forward(ledger, {&window, 1}));
  }
}

// Scores a made-up stream: the first batches allocate, those after them are timed, with all that the mode does to a window.
double WindowedEvaluator::estimate(int64_t targets) {
  constexpr int64_t kMostBatches = 16;
  constexpr double kEnoughSeconds = 0.3;
  const int64_t before = (first_is_whole() ? 1 : 0) + 2 * batch();  // a device makes a graph of the second
  Rng rng(1);
  std::vector<uint16_t> stream(static_cast<size_t>(settings_.score.context + (2 + kMostBatches) * batch() * shape_.scored + 1));
  for (uint16_t& token : stream) token = static_cast<uint16_t>(rng.below(static_cast<uint64_t>(model_.recipe.model.vocab)));
  start(stream);
  ScoreLedger ledger = make_ledger(stream, settings_);
  score_windows(ledger, 0, before, {});
  double seconds = 0;
  int64_t timed = 0;
  for (; timed < kMostBatches && seconds < kEnoughSeconds; ++timed)
    seconds += seconds_of([&] { score_windows(ledger, before + timed * batch(), before + (timed + 1) * batch(), {}); });
  return seconds / static_cast<double>(timed * batch()) * static_cast<double>(plan_of(targets).count()) +
         seconds_for_hints(settings_.score, targets, model_.recipe.model.vocab, *context_.pool);
}

namespace {

// Plain rows are cut as training cut them, also where a document is longer than its segments (scoring spec §2.1); sliding
// windows are there to give every target as much context as they hold.
WindowShape stateless_shape(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context) {
  WindowShape shape = window_shape(settings, context);
  if (settings.score.mode.base == ScoreMode::plain && packs_documents(model.recipe))
    shape.longest = model.recipe.data.max_segment;
  if (settings.losses_only && !settings.score.mode.tilt) shape.rows = EvalRows::losses;
  return shape;
}

class WindowEvaluator final : public WindowedEvaluator {
 public:
  WindowEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context)
      : WindowedEvaluator(model, settings, context, stateless_shape(model, settings, context)) {}
};

}  // namespace

std::unique_ptr<Evaluator> make_window_evaluator(const ScoredModel& model, const ScoreSettings& settings,
                                                 const ScoreContext& context) {
  return std::make_unique<WindowEvaluator>(model, settings, context);
}

}  // namespace fairway
