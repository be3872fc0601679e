// Ops that combine rows element by element: Add, ValueMix, Skip, LaneMix, LaneMerge (spec §4.4, §4.6.2, §4.10, §5.2).
#include <cmath>

#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const Add& op, const Forward<Add>& call) { forward_by_rows(op, call, call.in.a.rows(), 3 * call.in.a.cols()); }

void backward(const Add& op, const Backward<Add>& call) { backward_by_rows(op, call, call.in.a.rows(), 3 * call.in.a.cols()); }

void forward(const ValueMix& op, const Forward<ValueMix>& call) {
  forward_by_rows(op, call, call.in.v.rows(), 3 * call.in.v.cols());
}

void backward(const ValueMix& op, const Backward<ValueMix>& call) {
  const double* partials = backward_by_chunks<double>(op, call, call.in.v.rows(), 4 * call.in.v.cols(), 1);
  if (call.din.scale) put_gradient(call.din.scale, 0, sum_chunks(partials, 1, 0));
}

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

void forward(const LaneMix& op, const Forward<LaneMix>& call) {
  forward_by_rows(op, call, call.in.lane0.rows(), 6 * call.in.lane0.cols());
}

void backward(const LaneMix& op, const Backward<LaneMix>& call) {
  const double* partials = backward_by_chunks<double>(op, call, call.in.lane0.rows(), 10 * call.in.lane0.cols(), 6);
  for (int64_t i = 0; i < 2 && call.din.resid; ++i) put_gradient(call.din.resid, i, sum_chunks(partials, 6, i));
  for (int64_t i = 0; i < 4 && call.din.post; ++i) put_gradient(call.din.post, i, sum_chunks(partials, 6, 2 + i));
}

void forward(const LaneMerge& op, const Forward<LaneMerge>& call) {
  forward_by_rows(op, call, call.in.lane0.rows(), 3 * call.in.lane0.cols());
}

void backward(const LaneMerge& op, const Backward<LaneMerge>& call) {
  backward_by_rows(op, call, call.in.lane0.rows(), 3 * call.in.lane0.cols());
}

}  // namespace fairway::cpu
