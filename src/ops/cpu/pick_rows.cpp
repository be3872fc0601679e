#include "ops/cpu/cpu.h"
#include "ops/cpu/table_rows.h"

namespace fairway::cpu {

void forward(const PickRows&, const Forward<PickRows>& call) {
  const int32_t* rows = call.in.rows.as<int32_t>();
  check_tokens(call.in.rows, call.in.x.dim(0));
  gather(*call.queue, call.in.x, call.in.rows.numel(), call.out.y, [=](int64_t i) -> int64_t { return rows[i]; });
}

void backward(const PickRows&, const Backward<PickRows>& call) {
  const int32_t* rows = call.in.rows.as<int32_t>();
  if (!call.din.x) return;
  check_tokens(call.in.rows, call.in.x.dim(0));
  scatter(*call.queue, call.dout.y.as<float>(), call.in.rows.numel(), call.din.x,
          [=](int64_t i) -> int64_t { return rows[i]; });
}

}  // namespace fairway::cpu
