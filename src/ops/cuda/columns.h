// Sums over rows without atomics: each block leaves one partial row, a second kernel adds them in a fixed order.
#pragma once

#include "ops/cuda/elements.cuh"

namespace fairway::cuda {

// Partial sums of `columns` numbers from each of `blocks` blocks.
struct Partials {
  float* data;
  int blocks;
  int64_t columns;
};

// How many blocks a kernel with column sums runs in.
inline int column_blocks(Context& context, int64_t items, int per_block) {
  const int64_t wanted = (items + per_block - 1) / per_block, most = int64_t{4} * context.processors();
  return static_cast<int>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}
// The same for kernels that keep a warp's sums in registers: two blocks a processor.
inline int row_blocks(Context& context, int64_t rows) {
  const int64_t wanted = (rows + kWarps - 1) / kWarps, most = int64_t{2} * context.processors();
  return static_cast<int>(wanted < most ? wanted : most);
}
// Rows (or groups) of accumulators that fit 48 KB, at most kWarps.
inline int column_warps(int64_t columns) {
  const int64_t fit = (48 << 10) / (columns * static_cast<int64_t>(sizeof(float)));
  return static_cast<int>(fit < 1 ? 1 : fit < kWarps ? fit : kWarps);
}

struct ColumnSum {
  Tensor to;      // float; absent: these columns are not wanted
  int64_t count;  // columns
};
// Adds the partial rows and stores the totals; the sums lie one after another in a partial row.
void add_columns(Scratch& scratch, const Partials& partials, std::initializer_list<ColumnSum> sums);

// Adds `rows` accumulator rows of `columns` floats in shared memory into this block's partial row.
__device__ inline void leave_partials(const float* accumulators, int rows, const Partials& partials) {
  __syncthreads();
  for (int64_t c = threadIdx.x; c < partials.columns; c += blockDim.x) {
    float total = 0;
    for (int r = 0; r < rows; ++r) total += accumulators[r * partials.columns + c];
    partials.data[blockIdx.x * partials.columns + c] = total;
  }
}

// Accumulators of warps whose lanes hold V neighbouring columns each: element k of all lanes lies together, so that a warp's
// additions touch 32 different banks.
template <int V>
__device__ int64_t spread(int64_t column) {
  return column / (32 * V) * (32 * V) + column % V * 32 + column / V % 32;
}
inline int64_t spread_width(int64_t width, int v) { return (width + 32 * v - 1) / (32 * v) * (32 * v); }

// As leave_partials, of accumulator rows that hold `sets` spread rows of `width` columns.
template <int V>
__device__ void leave_spread(const float* accumulators, int rows, int64_t width, int64_t padded, const Partials& partials) {
  __syncthreads();
  const int64_t sets = partials.columns / width;
  for (int64_t c = threadIdx.x; c < partials.columns; c += blockDim.x) {
    float total = 0;
    for (int r = 0; r < rows; ++r) total += accumulators[(r * sets + c / width) * padded + spread<V>(c % width)];
    partials.data[blockIdx.x * partials.columns + c] = total;
  }
}

}  // namespace fairway::cuda
