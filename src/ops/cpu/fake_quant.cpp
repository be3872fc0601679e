#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const FakeQuant& op, const Forward<FakeQuant>& call) {
  forward_by_rows(op, call, call.in.weight.rows(), 2 * call.in.weight.cols());
}

void backward(const FakeQuant& op, const Backward<FakeQuant>& call) {
  backward_by_rows(op, call, call.in.weight.rows(), 2 * call.in.weight.cols());
}

}  // namespace fairway::cpu
