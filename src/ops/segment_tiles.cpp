#include "ops/segment_tiles.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan SegmentTiles::plan(const In& in) const {
  const int64_t rows = in.segment_start.numel();
  require_indices(in.segment_start, rows, name, "segment_start");
  require(row_length > 0 && rows % row_length == 0, name, "rows must be whole sequences");
  require(rows < (int64_t{1} << 28), name, "there are too many rows for indices of 32 bits");
  const SegmentTilesLayout layout(rows, row_length);
  return {.out = {{{layout.words()}, DType::i32}}, .forward_workspace = static_cast<size_t>(layout.most + 1) * sizeof(int32_t)};
}

}  // namespace fairway
