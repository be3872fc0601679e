#include "ops/cuda/columns.h"

namespace fairway::cuda {
namespace {

constexpr int kGroups = 8;  // of blocks, added side by side for each of 32 columns

// A block adds 32 columns over all partial rows, in double.
__global__ void add_columns_kernel(Partials partials, int64_t offset, int64_t count, Sink<float> sum) {
  __shared__ double totals[kGroups][32];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  double total = 0;
  if (column < count) {
#pragma unroll 4
    for (int b = static_cast<int>(threadIdx.y); b < partials.blocks; b += kGroups)
      total += static_cast<double>(partials.data[b * partials.columns + offset + column]);
  }
  totals[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= count) return;
  for (int g = 1; g < kGroups; ++g) total += totals[g][threadIdx.x];
  sum.put(column, static_cast<float>(total));
}

}  // namespace

void add_columns(Scratch& scratch, const Partials& partials, std::initializer_list<ColumnSum> sums) {
  int64_t offset = 0;
  for (const ColumnSum& sum : sums) {
    if (sum.to) {
      add_columns_kernel<<<static_cast<unsigned>((sum.count + 31) / 32), dim3(32, kGroups), 0, scratch.stream()>>>(
          partials, offset, sum.count, sink<float>(sum.to));
      check_launch("add_columns");
    }
    offset += sum.count;
  }
}

}  // namespace fairway::cuda
