#include "ops/cpu/blend.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const MuonMomentum& op, const Forward<MuonMomentum>& call) {
  const MomentumFactors factors{.clip = static_cast<float>(factor_or_one(call.in.clip)),
                                .momentum = static_cast<float>(scalar(call.in.scalars, StepScalar::momentum)),
                                .columns = call.in.grad.cols(),
                                .row_norm = op.row_norm};
  const UpdateKernels& update = kernels().update;
  float *buffer = call.in.buffer.as<float>(), *u = call.out.u.as<float>();
  const float* grad = call.in.grad.as<float>();
  for_rows(*call.queue, call.in.grad.rows(), 3 * factors.columns,
           [&](RowRange range) { update.momentum(factors, range, grad, buffer, u); });
}

}  // namespace fairway::cpu
