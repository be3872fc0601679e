#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const MixNorm& op, const Forward<MixNorm>& call) {
  forward_by_rows(op, call, call.in.x.rows(), 4 * call.in.x.cols());
}

void backward(const MixNorm& op, const Backward<MixNorm>& call) {
  const int64_t columns = 2 * call.in.x.cols();
  const float* partials = backward_by_chunks<float>(op, call, call.in.x.rows(), 7 * call.in.x.cols(), columns);
  if (!call.din.mix) return;
  for (int64_t c = 0; c < columns; ++c) put_gradient(call.din.mix, c, sum_chunks(partials, columns, c));
}

}  // namespace fairway::cpu
