#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const LaneMerge& op, const Forward<LaneMerge>& call) {
  forward_by_rows(op, call, call.in.lane0.rows(), 3 * call.in.lane0.cols());
}

void backward(const LaneMerge& op, const Backward<LaneMerge>& call) {
  backward_by_rows(op, call, call.in.lane0.rows(), 3 * call.in.lane0.cols());
}

}  // namespace fairway::cpu
