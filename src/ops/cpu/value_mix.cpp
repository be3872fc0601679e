#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const ValueMix& op, const Forward<ValueMix>& call) {
  forward_by_rows(op, call, call.in.v.rows(), 3 * call.in.v.cols());
}

void backward(const ValueMix& op, const Backward<ValueMix>& call) {
  const double* partials = backward_by_chunks<double>(op, call, call.in.v.rows(), 4 * call.in.v.cols(), 1);
  if (call.din.scale) put_gradient(call.din.scale, 0, sum_chunks(partials, 1, 0));
}

}  // namespace fairway::cpu
