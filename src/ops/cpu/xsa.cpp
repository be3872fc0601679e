#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const Xsa& op, const Forward<Xsa>& call) {
  forward_by_rows(op, call, call.in.y.rows(), 2 * call.in.y.cols() + call.in.v.cols());
}

void backward(const Xsa& op, const Backward<Xsa>& call) {
  backward_by_rows(op, call, call.in.y.rows(), 3 * call.in.y.cols() + 2 * call.in.v.cols());
}

}  // namespace fairway::cpu
