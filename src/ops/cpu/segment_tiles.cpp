#include "ops/cpu/cpu.h"
#include "ops/cut_segments.h"

namespace fairway::cpu {

void forward(const SegmentTiles& op, const Forward<SegmentTiles>& call) { cut_segments(op, call); }

}  // namespace fairway::cpu
