#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const Add& op, const Forward<Add>& call) { forward_by_rows(op, call, call.in.a.rows(), 3 * call.in.a.cols()); }

void backward(const Add& op, const Backward<Add>& call) { backward_by_rows(op, call, call.in.a.rows(), 3 * call.in.a.cols()); }

}  // namespace fairway::cpu
