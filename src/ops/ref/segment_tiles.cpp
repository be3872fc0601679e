#include "ops/cut_segments.h"
#include "ops/ref/ref.h"

namespace fairway::ref {

void forward(const SegmentTiles& op, const Forward<SegmentTiles>& f) { cut_segments(op, f); }

}  // namespace fairway::ref
