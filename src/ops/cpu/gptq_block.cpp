#include "base/trellis.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const GptqBlock& op, const Forward<GptqBlock>& call) {
  const int64_t rows = call.in.work.dim(0), columns = call.in.work.dim(1), count = op.end - op.begin;
  const float* factor = call.in.factor.as<float>() + op.begin * columns;
  float* work = call.in.work.as<float>();
  const GptqPanel panel{.work = work + op.begin,
                        .ld_work = columns,
                        .factor = factor + op.begin,
                        .ld_factor = columns,
                        .scale = call.in.scale.as<float>(),
                        .error = call.in.error.as<float>(),
                        .ld_error = call.in.error.cols(),
                        .loss = call.in.loss.as<double>(),
                        .count = count,
                        .levels = static_cast<double>(op.levels),
                        .trellis = op.trellis,
                        .outputs = call.in.outputs ? call.in.outputs.as<float>() : nullptr,
                        .side = call.in.outputs ? call.in.outputs.dim(0) : 0};
  if (panel.outputs != nullptr)
    call.queue->pool().parallel_for(rows / panel.side, [&](int64_t weight) {
      const auto own = static_cast<size_t>(weight) * GptqBlock::column_bytes(panel.side);
      kernels().quant.gptq_two_sided(panel, weight * panel.side, reinterpret_cast<uint8_t*>(call.workspace.data) + own);
    });
  else if (op.trellis)
    for_rows(*call.queue, (rows + kTrellisRows - 1) / kTrellisRows, kTaskElements, [&](RowRange range) {
      kernels().quant.gptq_trellis(panel, range.begin * kTrellisRows, std::min(range.end * kTrellisRows, rows));
    });
  else
    for_rows(*call.queue, rows, count * count / 4 + 1,
             [&](RowRange range) { kernels().quant.gptq_rows(panel, range.begin, range.end); });
  if (op.end == columns || rows == 0) return;
  ThreadPool& pool = call.queue->pool();
  gemm(pool,
       {.layout = ProductLayout::nn,
        .m = rows,
        .n = columns - op.end,
        .k = count,
        .a = panel.error,
        .lda = panel.ld_error,
        .b = factor + op.end,
        .ldb = columns,
        .c = work + op.end,
        .ldc = columns,
        .alpha = -1.0f,
        .accumulate = true},
       call.queue->scratch(gemm_workspace(pool.threads())));
}

}  // namespace fairway::cpu
