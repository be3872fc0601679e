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
  backward_by_rows(op, call, call.in.y.rows(), 2 * call.in.y.cols() + row_elements(call.in));
}

}  // namespace fairway::cpu
