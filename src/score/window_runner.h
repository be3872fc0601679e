// Batches of windows through the model: fills the inputs, runs the program, tells where each target's row lies. The head runs
// only on the last rows of a window, those that are scored or that an adapter asks for before them.
#pragma once

#include "recipe/segments.h"
#include "score/distribution.h"
#include "score/evaluator.h"
#include "score/windows.h"

namespace fairway {

struct WindowShape {
  int64_t context = 0;     // L
  int64_t scored = 0;      // most targets of a window, S
  int64_t before = 0;      // positions before the scored ones that the head runs on too
  int64_t batch = 1;       // windows at once
  bool documents = false;  // attention begins at the last document start
  int64_t longest = 0;     // tokens of a segment of a document; 0: as many as the window has
  bool raw = false;        // logits before the softcap, without loss
  bool losses_only = false;
};

class WindowRunner {
 public:
  WindowRunner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const WindowShape& shape,
               const ScoreContext& context);

  int64_t batch() const { return shape_.batch; }
  bool losses_only() const { return shape_.losses_only; }                            // no distributions and no logits
  int64_t head_rows() const { return head_; }                                        // of one window
  void run(std::span<const uint16_t> stream, std::span<const ScoreWindow> windows);  // at most batch()

  // Of the batch that ran last: window i's first position with a head row, and the row of one of its positions.
  int64_t head_begin(const ScoreWindow& window) const;
  int64_t row(int64_t i, const ScoreWindow& window, int64_t position) const;
  Distribution distribution(int64_t row) const { return {model_.logits(row), model_.lse()[static_cast<size_t>(row)], {}}; }
  double nll(int64_t row) const { return static_cast<double>(model_.nll()[static_cast<size_t>(row)]); }
  std::span<const float> logits(int64_t row) const { return model_.logits(row); }

 private:
  void fill(std::span<const uint16_t> stream, int64_t i, const ScoreWindow& window);

  WindowShape shape_;
  int64_t head_;  // rows of a window that the head runs on
  SegmentRule segments_;
  EvalModel model_;
};

}  // namespace fairway
