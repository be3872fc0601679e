#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {
namespace {

int64_t row_elements(const HeadOutput::In& in) { return in.y.cols() + (in.v ? in.v.cols() : 0); }

}  // namespace

void forward(const HeadOutput& op, const Forward<HeadOutput>& call) {
  forward_by_rows(op, call, call.in.y.rows(), call.in.y.cols() + row_elements(call.in));
}

void backward(const HeadOutput& op, const Backward<HeadOutput>& call) {
  const int64_t work = 2 * call.in.y.cols() + row_elements(call.in);
  if (!call.in.gate) return backward_by_rows(op, call, call.in.y.rows(), work);
  const int64_t gates = call.in.gate.numel();
  const double* partials = backward_by_chunks<double>(op, call, call.in.y.rows(), work + call.in.a.cols(), gates);
  for (int64_t i = 0; i < gates && call.din.gate; ++i) put_gradient(call.din.gate, i, sum_chunks(partials, gates, i));
}

}  // namespace fairway::cpu
