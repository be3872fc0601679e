#include "ops/cpu/blend.h"
#include "ops/cpu/cpu.h"

namespace fairway::cpu {

void forward(const Lerp& op, const Forward<Lerp>& call) {
  const double weight = op.slot ? scalar(call.in.scalars, *op.slot) : op.weight;
  blend(*call.queue, 1 - weight, weight, call.in.target, call.in.source);
}

}  // namespace fairway::cpu
