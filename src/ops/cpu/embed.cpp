#include "ops/cpu/cpu.h"
#include "ops/cpu/table_rows.h"

namespace fairway::cpu {

void forward(const Embed&, const Forward<Embed>& call) {
  const int32_t* tokens = call.in.tokens.as<int32_t>();
  check_tokens(call.in.tokens, call.in.table.dim(0));
  gather(*call.queue, call.in.table, call.in.tokens.numel(), call.out.y, [=](int64_t m) -> int64_t { return tokens[m]; });
}

void backward(const Embed&, const Backward<Embed>& call) {
  const int32_t* tokens = call.in.tokens.as<int32_t>();
  if (!call.din.table) return;
  check_tokens(call.in.tokens, call.in.table.dim(0));
  scatter(*call.queue, call.dout.y.as<float>(), call.in.tokens.numel(), call.din.table,
          [=](int64_t m) -> int64_t { return tokens[m]; });
}

}  // namespace fairway::cpu
