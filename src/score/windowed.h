// The part that the modes over windows share: the loop over batches, the first window's own program, timings. A mode says what
// happens to a batch once the model has run. Losses and digests are made where the model runs and come to the host while it
// works on the next batch; whole distributions come only where a mode or the ledger asks for them.
#pragma once

#include <array>
#include <map>

#include "score/tilt_hints.h"
#include "score/window_runner.h"

namespace fairway {

double seconds_of(const std::function<void()>& work);

// Windows that the model was asked for, at most as many as its program holds, and what comes back of them.
struct WindowBatch {
  explicit WindowBatch(Executor& executor) : records(executor) {}
  bool first() const { return windows.front().start == 0; }  // of the stream

  std::vector<ScoreWindow> windows;
  WindowRunner* runner = nullptr;
  EvalRecords records;
};

class WindowedEvaluator : public Evaluator {
 public:
  // `rest` is the shape of all windows but the first where stride < context; the first is scored whole.
  WindowedEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context,
                    const WindowShape& rest, ParamStore::Gradients gradients = ParamStore::Gradients::none);
  void run(ScoreLedger& ledger, const ScoreProgress& progress) override;
  void run_share(ScoreLedger& ledger, int64_t rank, int64_t ranks, const ScoreProgress& progress) override;
  ScoreCost cost() const override { return cost_; }
  double estimate(int64_t targets) override;

 protected:
  // Scores what the batch's windows score, in the order of the stream; the first window of a stream goes to score_window alone.
  virtual void finish_batch(ScoreLedger& ledger, const WindowBatch& batch);
  // The targets of window i of the batch, each from its own row.
  virtual void score_window(ScoreLedger& ledger, int64_t i, const WindowBatch& batch);

  void count_forward(const ScoreCost::Part& part);
  void count_learning(const ScoreCost::Part& part);
  void start(std::span<const uint16_t> stream);  // weights as they were loaded, no state, the stream's hints
  void score_windows(ScoreLedger& ledger, int64_t begin, int64_t end, const ScoreProgress& progress);
  // The same by all ranks of the context: each scores a run of neighbours, then each has all records. Nothing that the scores
  // depend on may change meanwhile. Collective.
  void score_together(ScoreLedger& ledger, int64_t begin, int64_t end, const ScoreProgress& progress);
  // The model on windows, at most batch(); the stream's first comes alone. The answer holds until the next call but one.
  WindowBatch& forward(ScoreLedger& ledger, std::span<const ScoreWindow> windows);
  // The two halves of it: asks without waiting, and waits.
  WindowBatch& ask(EvalRows rows, std::span<const uint16_t> stream, std::span<const ScoreWindow> windows);
  void await(WindowBatch& batch);
  EvalRows rows_for(const ScoreLedger& ledger, std::span<const ScoreWindow> windows) const;
  // A window's targets, each from what `row` tells of its position in the window: distribution and NLL.
  using RowAt = std::function<std::pair<Distribution, double>(int64_t position)>;
  void score_rows(ScoreLedger& ledger, const ScoreWindow& window, const RowAt& row);
  WindowPlan plan_of(int64_t targets) const;
  virtual void reset() {}  // state of the mode, before a run

  const ScoreSettings& settings() const { return settings_; }
  const ScoredModel& model() const { return model_; }
  const ScoreContext& context() const { return context_; }
  ParamStore& params() { return *params_; }
  const std::shared_ptr<ParamStore>& shared_params() { return params_; }
  int64_t batch() const { return shape_.batch; }  // windows at once
  const TiltHints& hints() const { return hints_; }

 private:
  bool first_is_whole() const { return shape_.scored < shape_.context || shape_.head; }
  WindowRunner& runner_for(bool whole, int64_t windows, EvalRows rows);
  void settle(ScoreLedger& ledger, WindowBatch& batch, const ScoreProgress& progress);
  void score_tail_again(ScoreLedger& ledger);

  ScoredModel model_;
  ScoreSettings settings_;
  ScoreContext context_;
  std::shared_ptr<ParamStore> params_;
  WindowShape shape_;
  ScoreCost cost_;
  struct Program {
    bool whole;  // the first window's: all its targets are scored
    int64_t windows;
    EvalRows rows;
    auto operator<=>(const Program&) const = default;
  };
  std::map<Program, std::unique_ptr<WindowRunner>> runners_;
  std::array<WindowBatch, 2> batches_;
  size_t asked_ = 0;
  TiltHints hints_;
};

// Hints of the stream where the mode has a tilt.
TiltHints hints_for(const ScoreRecipe& score, std::span<const uint16_t> stream, ThreadPool& pool);
// Seconds that the hints of so many targets would take.
double seconds_for_hints(const ScoreRecipe& score, int64_t targets, int64_t vocab, ThreadPool& pool);

// The shape of plain and sliding windows under the settings.
WindowShape window_shape(const ScoreSettings& settings, const ScoreContext& context);

}  // namespace fairway
