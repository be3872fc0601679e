#include "ops/cuda/elements.cuh"
#include "ops/cuda/table_rows.h"

namespace fairway::cuda {
namespace {

template <class T, int V>
__global__ void gather(int64_t rows, int64_t width, const int32_t* index, Source<T> table, Sink<T> y) {
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < rows; m += int64_t{gridDim.x} * kWarps) {
    for (int64_t c = lane_id() * V; c < width; c += 32 * V) {
      float x[V];
      table.load(index[m] * width + c, x);
      y.store(m * width + c, x);
    }
  }
}

}  // namespace

void gather_rows(Scratch& scratch, const int32_t* index, const Tensor& table, const Tensor& y, bool vectorized) {
  with_type(table, vectorized, [&]<class T, int V>() {
    gather<T, V><<<blocks_for(scratch.context(), y.rows(), kWarps), kThreads, 0, scratch.stream()>>>(
        y.rows(), y.cols(), index, source<T>(table), sink<T>(y));
  });
  check_launch("gather");
}

}  // namespace fairway::cuda
