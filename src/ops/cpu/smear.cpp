// SmearGate and SmearGateInput (spec §4.3, §6.9, A.2).
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

void forward(const SmearGateInput& op, const Forward<SmearGateInput>& call) {
  forward_by_rows(op, call, call.in.e.rows(), 2 * call.in.e.cols());
}

void backward(const SmearGateInput& op, const Backward<SmearGateInput>& call) {
  const int64_t width = call.in.weight.numel();
  const double* partials = backward_by_chunks<double>(op, call, call.in.e.rows(), 3 * call.in.e.cols(), width + 1);
  for (int64_t w = 0; w < width && call.din.weight; ++w) put_gradient(call.din.weight, w, sum_chunks(partials, width + 1, w));
  if (call.din.lambda) put_gradient(call.din.lambda, 0, sum_chunks(partials, width + 1, width));
}

}  // namespace fairway::cpu
