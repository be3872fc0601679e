#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

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
