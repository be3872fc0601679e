#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const Fill& op, const Forward<Fill>& call) {
  float* x = call.in.x.as<float>();
  for_elements(*call.queue, call.in.x.numel(),
               [&](RowRange range) { std::fill(x + range.begin, x + range.end, static_cast<float>(op.value)); });
}

}  // namespace fairway::cpu
