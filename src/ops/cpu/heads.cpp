// QkNormRope, Xsa and AttnGate (spec §4.6, §4.7, §6.5, §6.6, A.3).
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

void forward(const Xsa& op, const Forward<Xsa>& call) {
  forward_by_rows(op, call, call.in.y.rows(), 2 * call.in.y.cols() + call.in.v.cols());
}

void backward(const Xsa& op, const Backward<Xsa>& call) {
  backward_by_rows(op, call, call.in.y.rows(), 3 * call.in.y.cols() + 2 * call.in.v.cols());
}

void forward(const AttnGate& op, const Forward<AttnGate>& call) {
  forward_by_rows(op, call, call.in.y.rows(), 2 * call.in.y.cols());
}

void backward(const AttnGate& op, const Backward<AttnGate>& call) {
  const int64_t gates = call.in.gate.numel();
  const double* partials =
      backward_by_chunks<double>(op, call, call.in.y.rows(), 3 * call.in.y.cols() + call.in.a.cols(), gates);
  for (int64_t i = 0; i < gates && call.din.gate; ++i) put_gradient(call.din.gate, i, sum_chunks(partials, gates, i));
}

}  // namespace fairway::cpu
