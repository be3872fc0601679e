#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

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
