// Positions are sorted by the row they go to (stable, so in order within it); then every row of the table adds its own. Few
// tokens make most of a text: a row with many positions is cut into parts, each with a table of its own.
#include "ops/cuda/table_rows.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>

#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

constexpr int kParts = 8;
constexpr int kShort = 64;  // positions of a row that one block adds by itself

// Those of row r are at[start[r]] … at[start[r + 1] − 1], ascending.
struct Positions {
  const int32_t *start, *at;
};

__global__ void count_up(int count, int32_t* to) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < static_cast<unsigned>(count); i += gridDim.x * blockDim.x)
    to[i] = static_cast<int32_t>(i);
}

// The thread of the first position of a row tells where it starts, and so do the rows before it that have none.
__global__ void find_starts(int count, int rows, const int32_t* sorted, int32_t* start) {
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i <= count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    const int first = i == 0 ? 0 : min(sorted[i - 1], rows) + 1, last = i == count ? rows : min(sorted[i], rows);
    for (int row = first; row <= last; ++row) start[row] = i;
  }
}

Positions sort_positions(Scratch& scratch, const int32_t* index, int count, int rows) {
  auto *sorted = scratch.take<int32_t>(count), *places = scratch.take<int32_t>(count), *at = scratch.take<int32_t>(count),
       *start = scratch.take<int32_t>(rows + 1);
  const int blocks = blocks_for(scratch.context(), count), bits = std::bit_width(static_cast<unsigned>(rows));
  count_up<<<blocks, kThreads, 0, scratch.stream()>>>(count, places);
  size_t bytes = 0;
  check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, index, sorted, places, at, count, 0, bits, scratch.stream()),
        "DeviceRadixSort");
  auto* memory = scratch.take<std::byte>(static_cast<int64_t>(bytes) + 1);
  check(cub::DeviceRadixSort::SortPairs(memory, bytes, index, sorted, places, at, count, 0, bits, scratch.stream()),
        "DeviceRadixSort");
  find_starts<<<blocks, kThreads, 0, scratch.stream()>>>(count, rows, sorted, start);
  return {start, at};
}

// V columns a thread. As many positions at once as there are threads for a row's columns; their sums are added in order.
template <class T, int V>
__global__ void add_positions(Positions positions, int64_t width, Source<T> rows, float* tables, Sink<float> table) {
  __shared__ float shared[kThreads * V];
  const int lanes = min(static_cast<int>(width / V), kThreads), groups = kThreads / lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t row = blockIdx.x, part = blockIdx.y, column = (int64_t{blockIdx.z} * lanes + lane) * V;
  int begin = positions.start[row], end = positions.start[row + 1];
  const bool whole = end - begin <= kShort;
  if (whole && (part > 0 || (begin == end && table.add))) return;
  if (!whole) {
    const int64_t count = end - begin;
    end = begin + static_cast<int>(count * (part + 1) / kParts);
    begin += static_cast<int>(count * part / kParts);
  }
  float sums[V] = {};
  if (group < groups && column < width) {
#pragma unroll 4
    for (int i = begin + group; i < end; i += groups) {
      float x[V];
      rows.load(positions.at[i] * width + column, x);
#pragma unroll
      for (int k = 0; k < V; ++k) sums[k] += x[k];
    }
  }
#pragma unroll
  for (int k = 0; k < V; ++k) shared[k * kThreads + threadIdx.x] = sums[k];
  __syncthreads();
  if (group > 0 || column >= width) return;
  for (int g = 1; g < groups; ++g) {
#pragma unroll
    for (int k = 0; k < V; ++k) sums[k] += shared[k * kThreads + g * lanes + lane];
  }
#pragma unroll
  for (int k = 0; k < V; ++k) {
    if (whole)
      table.put(row * width + column + k, sums[k]);
    else
      tables[(part * gridDim.x + row) * width + column + k] = sums[k];
  }
}

__global__ void add_parts(Positions positions, int64_t width, const float* tables, Sink<float> table) {
  const int64_t row = blockIdx.x;
  if (positions.start[row + 1] - positions.start[row] <= kShort) return;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    float total = 0;
#pragma unroll
    for (int part = 0; part < kParts; ++part) total += tables[(part * gridDim.x + row) * width + c];
    table.put(row * width + c, total);
  }
}

}  // namespace

void scatter_rows(Scratch& scratch, const int32_t* index, const Tensor& rows, const Tensor& table) {
  if (!table) return;
  const int64_t width = rows.cols();
  const auto height = static_cast<unsigned>(table.rows());
  const Positions positions = sort_positions(scratch, index, static_cast<int>(rows.rows()), static_cast<int>(height));
  auto* tables = scratch.take<float>(kParts * table.numel());
  const bool aligned = width % 8 == 0 && reinterpret_cast<uintptr_t>(rows.data) % 16 == 0;
  with_type(rows, aligned, [&]<class T, int V>() {
    const int64_t lanes = std::min<int64_t>(width / V, kThreads);
    const dim3 grid(height, kParts, static_cast<unsigned>((width / V + lanes - 1) / lanes));
    add_positions<T, V><<<grid, kThreads, 0, scratch.stream()>>>(positions, width, source<T>(rows), tables, sink<float>(table));
  });
  add_parts<<<height, kThreads, 0, scratch.stream()>>>(positions, width, tables, sink<float>(table));
  check_launch("scatter_rows");
}

}  // namespace fairway::cuda
