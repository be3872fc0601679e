#include <cmath>

#include "ops/cpu/blend.h"
#include "ops/cpu/cpu.h"

namespace fairway::cpu {

void forward(const MuonApply& op, const Forward<MuonApply>& call) {
  const double lr = op.learning_rate * scalar(call.in.scalars, StepScalar::learning_rate_scale);
  const double shape = static_cast<double>(call.in.param.dim(1)) / static_cast<double>(call.in.param.dim(2));
  blend(*call.queue, 1 - lr * op.weight_decay, -lr * std::sqrt(std::max(1.0, shape)), call.in.param, call.in.o);
}

}  // namespace fairway::cpu
