#include "ops/cuda/columns.h"

namespace fairway::cuda {
namespace {

constexpr int kGroups = 32;   // of partial rows, added side by side for each of 32 columns: the sums wait for memory
constexpr int kMostSums = 2;  // of one call

struct Totals {
  Sink<float> to[kMostSums];
  int64_t end[kMostSums];  // of its columns
};

// A block adds 32 columns over all partial rows, in double.
__global__ void __launch_bounds__(32 * kGroups) add_columns_kernel(Partials partials, Totals totals) {
  __shared__ double of_groups[kGroups][33];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  double total = 0;
  if (column < partials.columns) {
#pragma unroll 8
    for (int b = static_cast<int>(threadIdx.y); b < partials.blocks; b += kGroups)
      total += static_cast<double>(partials.data[b * partials.columns + column]);
  }
  of_groups[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= partials.columns) return;
  for (int g = 1; g < kGroups; ++g) total += of_groups[g][threadIdx.x];
  const bool first = column < totals.end[0];
  (first ? totals.to[0] : totals.to[1]).put(first ? column : column - totals.end[0], static_cast<float>(total));
}

}  // namespace

void add_columns(Scratch& scratch, const Partials& partials, std::initializer_list<ColumnSum> sums) {
  FAIRWAY_ASSERT(sums.size() <= kMostSums, "more sums in a partial row than add_columns takes");
  Totals totals{};
  int64_t end = 0, count = 0;
  for (const ColumnSum& sum : sums) {
    totals.to[count] = sink<float>(sum.to);
    totals.end[count++] = end += sum.count;
  }
  FAIRWAY_ASSERT(end == partials.columns, "the sums are all of a partial row");
  add_columns_kernel<<<static_cast<unsigned>((end + 31) / 32), dim3(32, kGroups), 0, scratch.stream()>>>(partials, totals);
  check_launch("add_columns");
}

}  // namespace fairway::cuda
