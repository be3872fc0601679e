// Ops that join streams element by element: linear combinations of up to four, and the dot product that is the gradient of a
// factor, a partial for each block, added in order.
#pragma once

#include "ops/cuda/columns.h"

namespace fairway::cuda {

// out_i = Σ_j factor_ij·in_j for up to four streams in and out; factors come from one float tensor or are constants.
template <class T, int In, int Out>
struct Combination {
  Source<T> in[In];
  Sink<T> out[Out];
  Source<float> factors;  // absent: constant
  int place[Out][In];     // of the factor; −1: `constant`, −2: 0
  float constant;
};

template <class T, int V, int In, int Out>
__global__ void combine(int64_t count, Combination<T, In, Out> c) {
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    float x[In][V];
#pragma unroll
    for (int j = 0; j < In; ++j) c.in[j].load(i, x[j]);
#pragma unroll
    for (int o = 0; o < Out; ++o) {
      float total[V] = {};
#pragma unroll
      for (int j = 0; j < In; ++j) {
        if (c.place[o][j] == -2) continue;
        const float factor = c.place[o][j] < 0 ? c.constant : c.factors[c.place[o][j]];
#pragma unroll
        for (int k = 0; k < V; ++k) total[k] += factor * x[j][k];
      }
      c.out[o].store(i, total);
    }
  }
}

template <class T, int V, int In, int Out>
void launch_combine(Scratch& scratch, int64_t count, const Combination<T, In, Out>& c) {
  combine<T, V, In, Out><<<blocks_for(scratch.context(), count / V), kThreads, 0, scratch.stream()>>>(count, c);
  check_launch("combine");
}

// Σ a·b.
template <class T, int V>
__global__ void dot_streams(int64_t count, Source<T> a, Source<T> b, Partials partials) {
  __shared__ float accumulators[kWarps];
  float sum = 0;
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    float x[V], y[V];
    a.load(i, x);
    b.load(i, y);
#pragma unroll
    for (int k = 0; k < V; ++k) sum += x[k] * y[k];
  }
  sum = warp_sum(sum);
  if (lane_id() == 0) accumulators[warp_id()] = sum;
  leave_partials(accumulators, kWarps, partials);
}

template <class T, int V>
Partials dot(Scratch& scratch, int64_t count, Source<T> a, Source<T> b) {
  const int blocks = column_blocks(scratch.context(), count / V, kThreads);
  const Partials partials{scratch.take<float>(blocks), blocks, 1};
  dot_streams<T, V><<<blocks, kThreads, 0, scratch.stream()>>>(count, a, b, partials);
  check_launch("dot");
  return partials;
}

// y = factor·(a + b), and its gradient.
template <class F>
void half_sum(const F& f, Queue* queue, const Tensor& a, const Tensor& b, const Tensor& y, float factor) {
  Scratch scratch(queue);
  with_type(y, vectors(f, y.numel()), [&]<class T, int V>() {
    launch_combine<T, V, 2, 1>(scratch, y.numel(), {{source<T>(a), source<T>(b)}, {sink<T>(y)}, {nullptr}, {{-1, -1}}, factor});
  });
}

template <class B>
void half_sum_backward(const B& b, Queue* queue, const Tensor& g, const Tensor& da, const Tensor& db, float factor) {
  Scratch scratch(queue);
  with_type(g, vectors(b, g.numel()), [&]<class T, int V>() {
    launch_combine<T, V, 1, 2>(scratch, g.numel(),
                               {{source<T>(g)}, {sink<T>(da), sink<T>(db)}, {nullptr}, {{-1}, {-1}}, factor});
  });
}

}  // namespace fairway::cuda
