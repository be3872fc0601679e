// Sums go over a fixed number of blocks.
#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

__device__ inline double block_sum(double x) {  // valid in thread 0
  __shared__ double sums[kWarps];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (lane_id() == 0) sums[warp_id()] = x;
  __syncthreads();
  for (int i = 1; threadIdx.x == 0 && i < kWarps; ++i) x += sums[i];
  return x;
}

template <int V>
__global__ void sum_squares(int64_t count, Source<float> x, double* partials) {
  double total = 0;
  for (int64_t i = first_index() * V; i < count; i += index_stride() * V) {
    float v[V], part = 0;
    x.load(i, v);
#pragma unroll
    for (int k = 0; k < V; ++k) part += v[k] * v[k];
    total += static_cast<double>(part);
  }
  total = block_sum(total);
  if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

__global__ void add_partials(int count, const double* partials, double* out) {  // one block
  double total = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) total += partials[i];
  total = block_sum(total);
  if (threadIdx.x == 0) *out = total;
}

}  // namespace

void forward(const SumSquares& op, const Forward<SumSquares>& f) {
  Scratch scratch(f.queue);
  const int64_t count = f.in.x.numel();
  const int blocks = blocks_for(scratch.context(), count, 4 * kThreads);
  auto* partials = scratch.take<double>(blocks);
  with_type(f.in.x, vectors(f, count), [&]<class T, int V>() {
    constexpr int kWide = V == 1 ? 1 : 4;
    sum_squares<kWide><<<blocks, kThreads, 0, scratch.stream()>>>(count, source<float>(f.in.x), partials);
  });
  add_partials<<<1, kThreads, 0, scratch.stream()>>>(blocks, partials, pointer<double>(f.in.totals) + op.slot);
  check_launch("sum_squares");
}

}  // namespace fairway::cuda
