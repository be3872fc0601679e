// Batches of windows through the model: fills the inputs, runs the program, tells where each target's row lies. The head runs
// only on the last rows of a window, those that are scored or that a mode's own head asks for before them.
#pragma once

#include "recipe/segments.h"
#include "score/distribution.h"
#include "score/evaluator.h"
#include "score/tilt_hints.h"
#include "score/windows.h"

namespace fairway {

// Rows of a program of windows.
struct WindowRows {
  int64_t windows = 0;  // at once
  int64_t head = 0;     // of each window that go to the head
  int64_t scored = 0;   // of each window, the most
};

// What a mode does in place of the model's head; its program scores `scored` rows of each window.
class WindowHead {
 public:
  // Positions of a window: its first row that goes to the head, and its first that is scored.
  struct Place {
    int64_t head_begin = 0, scored_begin = 0;
    bool repeated = false;  // fills a batch that has fewer windows; nobody reads its rows
  };
  virtual ~WindowHead() = default;
  virtual ModelOutputs record(Tape& tape, Var hidden, Var table) = 0;
  virtual void fill(std::span<const uint16_t> stream, int64_t i, const ScoreWindow& window, const Place& place) = 0;
  virtual void send(Executor& executor) = 0;  // what was filled
};
using HeadMaker = std::function<std::unique_ptr<WindowHead>(const WindowRows&)>;

struct WindowShape {
  int64_t context = 0;     // L
  int64_t scored = 0;      // most targets of a window, S
  int64_t before = 0;      // positions before the scored ones that the head runs on too
  int64_t batch = 1;       // windows at once
  bool documents = false;  // attention begins at the last document start
  int64_t longest = 0;     // tokens of a segment of a document; 0: as many as the window has
  HeadMaker head{};        // absent: the model's
  EvalRows rows = EvalRows::records;
  std::optional<double> damping;  // of the tilt that records have; nothing: none
};

class WindowRunner {
 public:
  WindowRunner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const WindowShape& shape,
               const ScoreContext& context);

  int64_t batch() const { return shape_.batch; }
  bool tells_distributions() const { return shape_.rows == EvalRows::distributions; }
  size_t planned_bytes() const { return model_.planned_bytes(); }
  // At most batch() windows; losses and records go to `to`, without waiting, distributions stay here, not tilted.
  void run(std::span<const uint16_t> stream, const TiltHints& hints, std::span<const ScoreWindow> windows, EvalRecords& to);

  int64_t row(int64_t i, const ScoreWindow& window, int64_t position) const;  // of a scored position of window i
  // Distributions of the batch that ran last.
  Distribution distribution(int64_t row) const { return {model_.logits(row), model_.lse()[static_cast<size_t>(row)], {}}; }
  double nll(int64_t row) const { return static_cast<double>(model_.nll()[static_cast<size_t>(row)]); }

 private:
  int64_t begin_of(const ScoreWindow& window, int64_t before, int64_t rows) const;
  int64_t head_begin(const ScoreWindow& window) const { return begin_of(window, shape_.before, head_); }
  int64_t scored_begin(const ScoreWindow& window) const { return begin_of(window, 0, shape_.scored); }
  bool tilts() const { return shape_.rows == EvalRows::records && shape_.damping; }
  void fill(std::span<const uint16_t> stream, const TiltHints& hints, int64_t i, const ScoreWindow& window);

  WindowShape shape_;
  int64_t head_;  // rows of a window that the head runs on
  SegmentRule segments_;
  Executor* executor_;
  std::unique_ptr<WindowHead> own_head_;
  EvalModel model_;
};

}  // namespace fairway
