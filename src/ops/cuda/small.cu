#include "ops/cuda/elements.cuh"
#include "ops/cuda/small.h"

namespace fairway::cuda {
namespace {

template <class T>
__global__ void scale_rows_kernel(int64_t count, int64_t width, int64_t scales, const T* w, const float* scale, T* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    assign(out[i], scale[scales == 1 ? 0 : i / width] * to_float(w[i]));
}

// One block per row; with one scale for all, `totals` keeps the sum of each row.
template <class T>
__global__ void weight_gradients(int64_t width, int64_t scales, const float* gram, const T* w, const float* scale,
                                 Sink<float> dw, Sink<float> dscale, float* totals) {
  __shared__ float sums[kWarps];
  const int64_t row = blockIdx.x;
  const float factor = scale[scales == 1 ? 0 : row];
  float total = 0;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    const float g = gram[row * width + c];
    total += g * to_float(w[row * width + c]);
    dw.put(row * width + c, factor * g);
  }
  total = warp_sum(total);
  if (lane_id() == 0) sums[warp_id()] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kWarps; ++i) total += sums[i];
  if (scales == 1)
    totals[row] = total;
  else
    dscale.put(row, total);
}

__global__ void sum_rows(int64_t rows, const float* totals, Sink<float> out) {  // one warp
  double total = 0;
  for (int64_t i = lane_id(); i < rows; i += 32) total += static_cast<double>(totals[i]);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (lane_id() == 0) out.put(0, static_cast<float>(total));
}

constexpr int kListed = 512, kAtOnce = 4;  // positions gathered before they are added; indices of a thread in one step
constexpr int kColumns = 4;                // columns of a thread; wider tables take several rounds

// Which of the thread's next indices are `row`, a bit for each.
__device__ unsigned matches(const int32_t* index, int64_t first, int64_t count, int32_t row) {
  unsigned mine = 0;
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k)
    if (first + k < count && index[first + k] == row) mine |= 1u << k;
  return mine;
}

// Appends the block's matches in order; returns how many are listed then.
__device__ int append(int32_t* listed, int32_t* totals, int held, unsigned mine, int64_t first) {
  int before = __popc(mine);
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, before, step);
    if (lane_id() >= step) before += other;
  }
  if (lane_id() == 31) totals[warp_id()] = before;
  __syncthreads();
  int at = held + before - __popc(mine), all = held;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp_id()) at += totals[w];
    all += totals[w];
  }
  for (int k = 0; k < kAtOnce; ++k)
    if (mine >> k & 1) listed[at++] = static_cast<int32_t>(first + k);
  __syncthreads();
  return all;
}

// A block finds its row's positions in its part of the indices, in order, and adds the rows there, a thread per column. Few
// tokens make most of a text, so a row's work is cut into gridDim.y parts, each with a table of its own.
template <class T>
__global__ void scatter_kernel(int64_t all, const int32_t* index, int64_t width, const T* rows, float* tables) {
  __shared__ int32_t listed[kListed + kAtOnce * kThreads];
  __shared__ int32_t totals[kWarps];
  const int64_t row = blockIdx.x, part = blockIdx.y, parts = gridDim.y;
  const int64_t start = all * part / parts, count = all * (part + 1) / parts;
  float* table = tables + (part * gridDim.x + row) * width;
  for (int64_t base = threadIdx.x; base - threadIdx.x < width; base += kColumns * kThreads) {
    float sums[kColumns] = {};
    const auto add_listed = [&](int held) {
#pragma unroll 4
      for (int i = 0; i < held; ++i) {
#pragma unroll
        for (int k = 0; k < kColumns; ++k)
          if (base + k * kThreads < width) sums[k] += to_float(rows[listed[i] * width + base + k * kThreads]);
      }
    };
    int held = 0;
    for (int64_t begin = start; begin < count; begin += kAtOnce * kThreads) {
      const int64_t first = begin + kAtOnce * threadIdx.x;
      const unsigned mine = matches(index, first, count, static_cast<int32_t>(row));
      if (!__syncthreads_or(static_cast<int>(mine))) continue;
      held = append(listed, totals, held, mine, first);
      if (held < kListed) continue;
      add_listed(held);
      held = 0;
      __syncthreads();
    }
    add_listed(held);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      if (base + k * kThreads < width) table[base + k * kThreads] = sums[k];
  }
}

__global__ void add_tables(int64_t count, int parts, const float* tables, Sink<float> table) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    float total = 0;
    for (int p = 0; p < parts; ++p) total += tables[p * count + i];
    table.put(i, total);
  }
}

template <class T, int V>
__global__ void pass_kernel(int64_t count, int64_t width, int64_t from_pitch, int64_t to_pitch, Source<T> from, Sink<T> to) {
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    // 64-bit division is slow, and no row of a few hundred million elements needs it.
    const int64_t row = count <= UINT32_MAX ? static_cast<uint32_t>(i) / static_cast<uint32_t>(width) : i / width;
    const int64_t c = i - row * width;
    float x[V];
    from.load(row * from_pitch + c, x);
    to.store(row * to_pitch + c, x);
  }
}

}  // namespace

void scale_rows(Scratch& scratch, const Tensor& w, const Tensor& scale, const Tensor& out) {
  with_type(w, false, [&]<class T, int V>() {
    scale_rows_kernel<T><<<blocks_for(scratch.context(), w.numel()), kThreads, 0, scratch.stream()>>>(
        w.numel(), w.cols(), scale.numel(), pointer<T>(w), pointer<float>(scale), pointer<T>(out));
  });
  check_launch("scale_rows");
}

void scaled_weight_gradients(Scratch& scratch, const Tensor& gram, const Tensor& w, const Tensor& scale, const Tensor& dw,
                             const Tensor& dscale) {
  if (!dw && !dscale) return;
  const int64_t rows = w.rows(), scales = scale.numel();
  float* totals = scratch.take<float>(rows);
  with_type(w, false, [&]<class T, int V>() {
    weight_gradients<T><<<static_cast<unsigned>(rows), kThreads, 0, scratch.stream()>>>(
        w.cols(), scales, pointer<float>(gram), pointer<T>(w), pointer<float>(scale), sink<float>(dw), sink<float>(dscale),
        totals);
  });
  check_launch("weight_gradients");
  if (scales == 1 && dscale) sum_rows<<<1, 32, 0, scratch.stream()>>>(rows, totals, sink<float>(dscale));
}

void scatter_rows(Scratch& scratch, const int32_t* index, const Tensor& rows, const Tensor& table) {
  if (!table) return;
  constexpr int kParts = 8;
  auto* tables = scratch.take<float>(kParts * table.numel());
  with_type(rows, false, [&]<class T, int V>() {
    scatter_kernel<T><<<dim3(static_cast<unsigned>(table.rows()), kParts), kThreads, 0, scratch.stream()>>>(
        rows.rows(), index, rows.cols(), pointer<T>(rows), tables);
  });
  add_tables<<<blocks_for(scratch.context(), table.numel()), kThreads, 0, scratch.stream()>>>(table.numel(), kParts, tables,
                                                                                              sink<float>(table));
  check_launch("scatter_rows");
}

void pass_through(Scratch& scratch, const Tensor& from, const Tensor& to) {
  if (!to || from.data == to.data) return;              // the memory plan lets a gradient pass by sharing its place
  const bool dense = from.pitch == 0 && to.pitch == 0;  // one long row, whatever its width
  const int64_t width = dense ? from.numel() : from.cols();
  const bool aligned =
      width % 8 == 0 && reinterpret_cast<uintptr_t>(from.data) % 16 == 0 && reinterpret_cast<uintptr_t>(to.data) % 16 == 0;
  with_type(from, aligned, [&]<class T, int V>() {
    pass_kernel<T, V><<<blocks_for(scratch.context(), from.numel() / V), kThreads, 0, scratch.stream()>>>(
        from.numel(), width, dense ? width : pitch_of(from), dense ? width : pitch_of(to), source<T>(from), sink<T>(to));
  });
  check_launch("pass_through");
}

}  // namespace fairway::cuda
