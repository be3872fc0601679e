#include "ops/cpu/cpu.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const HessianAccumulate&, const Forward<HessianAccumulate>& call) {
  const int64_t count = call.in.rows.dim(0), columns = call.in.rows.cols();
  const float* x = call.in.rows.as<float>();
  double* hessian = call.in.hessian.as<double>();
  float* product = reinterpret_cast<float*>(call.workspace.data);
  ThreadPool& pool = call.queue->pool();
  std::byte* scratch = call.queue->scratch(gemm_workspace(pool.threads()));
  for (int64_t first = 0; first < count; first += HessianAccumulate::kRowsAtOnce) {
    const float* rows = x + first * columns;
    for (int64_t i = 0; i < columns; i += HessianAccumulate::kBlock) {
      const int64_t height = std::min(HessianAccumulate::kBlock, columns - i), width = i + height;
      gemm(pool,
           {.layout = ProductLayout::tn,
            .m = height,
            .n = width,
            .k = std::min(HessianAccumulate::kRowsAtOnce, count - first),
            .a = rows + i,
            .lda = columns,
            .b = rows,
            .ldb = columns,
            .c = product,
            .ldc = width},
           scratch);
      for_rows(*call.queue, height, width, [&](RowRange range) {
        for (int64_t r = range.begin; r < range.end; ++r)
          for (int64_t j = 0; j <= i + r; ++j) hessian[(i + r) * columns + j] += static_cast<double>(product[r * width + j]);
      });
    }
  }
}

}  // namespace fairway::cpu
