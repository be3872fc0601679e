// The head of SLOT (scoring spec §2.4) over a batch of windows: an offset δ of the last hidden state for each window, or one
// for all of them, fitted on some of the windows' rows, and the scores of others under it. Rows are scored from logits that the
// shift E·δ is added to, since δ is far finer than a hidden state in bf16. Window-local offsets begin at zero and are fitted
// before the scores; carried ones are as the window before left them and are fitted after.
#pragma once

#include "autograd/tape.h"
#include "score/window_runner.h"
#include "tensor/arena.h"

namespace fairway {

// δ, its moments and the steps that it has taken, of as many groups as there may be at once; lives longer than its heads.
class SlotState {
 public:
  SlotState(int64_t groups, int64_t width);
  Tensor offset, m, v;  // (G, D)
  Tensor taken;         // i32 (1)

 private:
  Arena memory_;
};

// Positions [from, to) of a window whose targets its offset is fitted on.
struct FitRange {
  int64_t from = 0, to = 0;
  int64_t count() const { return to - from; }
};
using FitRule = std::function<FitRange(std::span<const uint16_t> stream, const ScoreWindow& window)>;

struct SlotForm {
  FitRule fitted;
  bool carried = false;
  bool shared = false;  // one offset for all windows of a batch: only what breaks the rules has it
};

// For WindowShape::head.
HeadMaker slot_heads(const ScoredModel& model, const SlotRecipe& slot, const SlotForm& form,
                     const std::shared_ptr<SlotState>& state);

// Window-local offsets: the positions before the scored ones, of the scored segment's document only where the recipe says so;
// too few of them leave the offset at zero.
FitRule fit_before_scores(const SlotRecipe& slot, int64_t bos);
// Windows whose head fits offsets. Their distributions come to the host where the mode has a tilt, which the host applies.
WindowShape with_offsets(WindowShape shape, const ScoredModel& model, const ScoreRecipe& score, const SlotForm& form,
                         const std::shared_ptr<SlotState>& state);
// Tells the ledger what a window's own offset was fitted on, before the window is scored: it refuses what had no score.
void tell_fit(ScoreLedger& ledger, const FitRange& range, const ScoreWindow& window);

// An offset for each of several documents that are scored chunk by chunk, all at the same place, beside adapters that learn: a
// chunk is scored under the offset that the chunks before it have left, then the offset is fitted on it.
class DocumentOffsets {
 public:
  DocumentOffsets(const ScoredModel& model, const SlotRecipe& slot, int64_t documents);
  // The part of a program over a chunk of each of the first `lanes` documents.
  class Part {
   public:
    Part(const DocumentOffsets& all, int64_t lanes, int64_t chunk);
    // Scores under the offsets, in place of the model's own, then the fit.
    ModelOutputs record(Tape& tape, const ModelOutputs& model, Var targets);
    void fill(int64_t lane, std::span<const uint16_t> targets, bool repeated);
    void send(Executor& executor);

   private:
    const DocumentOffsets* all_;
    int64_t lanes_, chunk_;
    Arena io_;
    Tensor fitted_, groups_, ones_;
  };
  void record_begin(Tape& tape) const;                  // offsets at zero
  void set_chunks(int64_t before, Executor& executor);  // chunks that came before the next

 private:
  int64_t vocab_, steps_;
  OffsetFit fit_;
  SlotState state_;
};

}  // namespace fairway
