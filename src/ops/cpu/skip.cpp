#include <cmath>

#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const Skip& op, const Forward<Skip>& call) { forward_by_rows(op, call, call.in.x.rows(), 3 * call.in.x.cols()); }

// Gated: dweight = (1−γ)Σ g⊙skip, dgate = γ(1−γ)Σ g⊙(x − weight⊙skip); additive: dweight = Σ g⊙skip.
void backward(const Skip& op, const Backward<Skip>& call) {
  const int64_t columns = call.in.x.cols();
  const float* partials = backward_by_chunks<float>(op, call, call.in.x.rows(), 5 * columns, 2 * columns);
  if (!call.din.weight && !call.din.gate) return;
  for (int64_t c = 0; c < columns; ++c) {
    const double with_skip = sum_chunks(partials, 2 * columns, c);
    double open = 0;
    if (call.in.gate) open = 1.0 / (1.0 + std::exp(-static_cast<double>(call.in.gate.as<float>()[c])));
    if (call.din.weight) put_gradient(call.din.weight, c, (1.0 - open) * with_skip);
    if (call.in.gate && call.din.gate)
      put_gradient(call.din.gate, c, open * (1.0 - open) * sum_chunks(partials, 2 * columns, columns + c));
  }
}

}  // namespace fairway::cpu
