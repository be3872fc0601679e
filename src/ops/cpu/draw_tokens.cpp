// DrawTokens: rows are shared out, each is drawn by one task.
#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"
#include "ops/draw_row.h"

namespace fairway::cpu {

void forward(const DrawTokens& op, const Forward<DrawTokens>& call) {
  auto* weights = reinterpret_cast<double*>(call.workspace.data);
  for_tasks(*call.queue, call.in.logits.rows(), call.in.logits.numel(),
            [&](int64_t row) { draw_row<float>(op, call.in, row, weights); });
  advance_position<float>(call.in);
}

}  // namespace fairway::cpu
