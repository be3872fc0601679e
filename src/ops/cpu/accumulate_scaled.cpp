#include "ops/cpu/blend.h"
#include "ops/cpu/cpu.h"

namespace fairway::cpu {

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& call) {
  blend(*call.queue, op.overwrite ? 0.0 : 1.0, op.factor * factor_or_one(call.in.coefficient), call.in.target, call.in.source);
}

}  // namespace fairway::cpu
