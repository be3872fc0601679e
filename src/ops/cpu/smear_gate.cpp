#include <cmath>

#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const SmearGate& op, const Forward<SmearGate>& call) {
  forward_by_rows(op, call, call.in.u.rows(), 2 * call.in.u.cols());
}

void backward(const SmearGate& op, const Backward<SmearGate>& call) {
  const int64_t columns = call.in.u.cols();
  const float* partials = backward_by_chunks<float>(op, call, call.in.u.rows(), 3 * columns, columns);
  if (!call.din.gate) return;
  for (int64_t c = 0; c < columns; ++c) {
    const double open = 1.0 / (1.0 + std::exp(-static_cast<double>(call.in.gate.as<float>()[c])));
    put_gradient(call.din.gate, c, open * (1.0 - open) * sum_chunks(partials, columns, c));
  }
}

}  // namespace fairway::cpu
