// What every form of SLOT shares: windows whose logits come raw, one offset of the last hidden state, rows to fit it on and the
// scores under it. A form says which rows, and when.
#pragma once

#include "score/slot_offset.h"
#include "score/windowed.h"

namespace fairway {

class OffsetEvaluator : public WindowedEvaluator {
 public:
  OffsetEvaluator(const ScoredModel& model, const ScoreSettings& settings, const ScoreContext& context,
                  const WindowShape& shape);

 protected:
  void reset() override { offset_.reset(); }
  SlotOffset& offset() { return offset_; }

  // Adds the rows of window i that predict the given tokens.
  static void add_rows(std::vector<SlotRow>& rows, const ScoredTokens& tokens, int64_t i, const ScoreWindow& window,
                       const WindowRunner& runner);
  void fit(std::span<const SlotRow> rows);  // all steps
  void score_shifted(ScoreLedger& ledger, int64_t i, const ScoreWindow& window, const WindowRunner& runner);

 private:
  SlotOffset offset_;
};

}  // namespace fairway
