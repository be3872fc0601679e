#pragma once

#include "ops/cuda/context.h"
#include "ops/segment_tiles.h"

namespace fairway::cuda {

// Fills `out` as `at` says.
void cut_segments(Scratch& scratch, const int32_t* segment_start, const SegmentTilesLayout& at, int64_t row_length,
                  int32_t* out);

}  // namespace fairway::cuda
