#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const RmsNorm& op, const Forward<RmsNorm>& call) {
  forward_by_rows(op, call, call.in.x.rows(), 2 * call.in.x.cols());
}

void backward(const RmsNorm& op, const Backward<RmsNorm>& call) {
  if (call.din.x) backward_by_rows(op, call, call.in.x.rows(), 3 * call.in.x.cols());
}

}  // namespace fairway::cpu
