#include "ops/cpu/blend.h"
#include "ops/cpu/cpu.h"

namespace fairway::cpu {

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& call) {
  const double factor = op.factor * factor_or_one(call.in.coefficient);
  blend(*call.queue, op.overwrite ? 0.0 : 1.0, factor, call.in.target, call.in.source, op.round);
}

}  // namespace fairway::cpu
