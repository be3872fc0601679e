// The head of SLOT (scoring spec §2.4) over a batch of windows: an offset δ of the last hidden state for each window, or one
// for all of them, fitted on some of the windows' rows, and the scores of others under it. Rows are scored from logits that the
// shift E·δ is added to, since δ is far finer than a hidden state in bf16. Window-local offsets begin at zero and are fitted
// before the scores; carried ones are as the window before left them and are fitted after.
#pragma once

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

}  // namespace fairway
