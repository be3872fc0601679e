#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const LaneMix& op, const Forward<LaneMix>& call) {
  forward_by_rows(op, call, call.in.lane0.rows(), 6 * call.in.lane0.cols());
}

void backward(const LaneMix& op, const Backward<LaneMix>& call) {
  const double* partials = backward_by_chunks<double>(op, call, call.in.lane0.rows(), 10 * call.in.lane0.cols(), 6);
  for (int64_t i = 0; i < 2 && call.din.resid; ++i) put_gradient(call.din.resid, i, sum_chunks(partials, 6, i));
  for (int64_t i = 0; i < 4 && call.din.post; ++i) put_gradient(call.din.post, i, sum_chunks(partials, 6, 2 + i));
}

}  // namespace fairway::cpu
