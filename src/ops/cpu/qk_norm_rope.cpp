#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const QkNormRope& op, const Forward<QkNormRope>& call) {
  forward_by_rows(op, call, call.in.q.rows(), 2 * (call.in.q.cols() + call.in.k.cols()));
}

void backward(const QkNormRope& op, const Backward<QkNormRope>& call) {
  const int64_t heads = call.in.gain.numel();
  const double* partials =
      backward_by_chunks<double>(op, call, call.in.q.rows(), 3 * (call.in.q.cols() + call.in.k.cols()), heads);
  for (int64_t h = 0; h < heads && call.din.gain; ++h) put_gradient(call.din.gain, h, sum_chunks(partials, heads, h));
}

}  // namespace fairway::cpu
