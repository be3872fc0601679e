#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const SumSquares& op, const Forward<SumSquares>& call) {
  const UpdateKernels& update = kernels().update;
  const float* x = call.in.x.as<float>();
  double* partials = reinterpret_cast<double*>(call.workspace.data);
  for_chunks(*call.queue, call.in.x.numel(), 1,
             [&](int64_t chunk, RowRange range) { partials[chunk] = update.sum_squares(x, range); });
  call.in.totals.as<double>()[op.slot] = sum_chunks(partials, 1, 0);
}

}  // namespace fairway::cpu
