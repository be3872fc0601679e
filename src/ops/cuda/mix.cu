// Ops that join streams element by element: add, value_mix, lane_merge, lane_mix. Gradients of their few scalars are sums over
// everything: a partial for each block, added in order.
#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

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
void launch(Scratch& scratch, int64_t count, const Combination<T, In, Out>& c) {
  combine<T, V, In, Out><<<blocks_for(scratch.context(), count / V), kThreads, 0, scratch.stream()>>>(count, c);
  check_launch("combine");
}

inline constexpr int kMostSums = 6;
template <class T>
struct Pairs {
  Source<T> a[kMostSums], b[kMostSums];
};

// One Σ a·b for each pair.
template <class T, int V, int N>
__global__ void dot_pairs(int64_t count, Pairs<T> p, Partials partials) {
  __shared__ float accumulators[kWarps * N];
  float sums[N] = {};
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      float x[V], y[V];
      p.a[n].load(i, x);
      p.b[n].load(i, y);
#pragma unroll
      for (int k = 0; k < V; ++k) sums[n] += x[k] * y[k];
    }
  }
#pragma unroll
  for (int n = 0; n < N; ++n) {
    const float total = warp_sum(sums[n]);
    if (lane_id() == 0) accumulators[warp_id() * N + n] = total;
  }
  leave_partials(accumulators, kWarps, partials);
}

template <class T, int V, int N>
Partials dots(Scratch& scratch, int64_t count, const Pairs<T>& pairs) {
  const int blocks = column_blocks(scratch.context(), count / V, kThreads);
  const Partials partials{scratch.take<float>(blocks * N), blocks, N};
  dot_pairs<T, V, N><<<blocks, kThreads, 0, scratch.stream()>>>(count, pairs, partials);
  check_launch("dots");
  return partials;
}

// y = factor·(a + b), and its gradient.
template <class F>
void half_sum(const F& f, Queue* queue, const Tensor& a, const Tensor& b, const Tensor& y, float factor) {
  Scratch scratch(queue);
  with_type(y, vectors(f, y.numel()), [&]<class T, int V>() {
    launch<T, V, 2, 1>(scratch, y.numel(), {{source<T>(a), source<T>(b)}, {sink<T>(y)}, {nullptr}, {{-1, -1}}, factor});
  });
}
template <class B>
void half_sum_backward(const B& b, Queue* queue, const Tensor& g, const Tensor& da, const Tensor& db, float factor) {
  Scratch scratch(queue);
  with_type(g, vectors(b, g.numel()), [&]<class T, int V>() {
    launch<T, V, 1, 2>(scratch, g.numel(), {{source<T>(g)}, {sink<T>(da), sink<T>(db)}, {nullptr}, {{-1}, {-1}}, factor});
  });
}

}  // namespace

void forward(const Add&, const Forward<Add>& f) { half_sum(f, f.queue, f.in.a, f.in.b, f.out.y, 1); }
void backward(const Add&, const Backward<Add>& b) { half_sum_backward(b, b.queue, b.dout.y, b.din.a, b.din.b, 1); }
void forward(const LaneMerge&, const Forward<LaneMerge>& f) { half_sum(f, f.queue, f.in.lane0, f.in.lane1, f.out.y, 0.5f); }
void backward(const LaneMerge&, const Backward<LaneMerge>& b) {
  half_sum_backward(b, b.queue, b.dout.y, b.din.lane0, b.din.lane1, 0.5f);
}

void forward(const ValueMix&, const Forward<ValueMix>& f) {
  Scratch scratch(f.queue);
  const int64_t count = f.in.v.numel();
  with_type(f.in.v, vectors(f, count), [&]<class T, int V>() {
    launch<T, V, 2, 1>(
        scratch, count,
        {{source<T>(f.in.v), source<T>(f.in.embed)}, {sink<T>(f.out.y)}, source<float>(f.in.scale), {{-1, 0}}, 1});
  });
}

void backward(const ValueMix&, const Backward<ValueMix>& b) {
  Scratch scratch(b.queue);
  const int64_t count = b.in.v.numel();
  with_type(b.in.v, vectors(b, count), [&]<class T, int V>() {
    launch<T, V, 1, 2>(
        scratch, count,
        {{source<T>(b.dout.y)}, {sink<T>(b.din.v), sink<T>(b.din.embed)}, source<float>(b.in.scale), {{-1}, {0}}, 1});
    if (b.din.scale) {
      add_columns(scratch, dots<T, V, 1>(scratch, count, {{source<T>(b.dout.y)}, {source<T>(b.in.embed)}}), {{b.din.scale, 1}});
    }
  });
}

namespace {

// resid (2) and post (2, 2) one after another, as the combination's factors.
__global__ void join_factors(Source<float> resid, Source<float> post, float* out) {
  out[threadIdx.x] = threadIdx.x < 2 ? resid[threadIdx.x] : post[threadIdx.x - 2];
}

const float* lane_factors(Scratch& scratch, const LaneMix::In& in) {
  float* out = scratch.take<float>(6);
  join_factors<<<1, 6, 0, scratch.stream()>>>(source<float>(in.resid), source<float>(in.post), out);
  return out;
}

}  // namespace

void forward(const LaneMix&, const Forward<LaneMix>& f) {
  Scratch scratch(f.queue);
  const int64_t count = f.in.lane0.numel();
  const float* factors = lane_factors(scratch, f.in);
  with_type(f.in.lane0, vectors(f, count), [&]<class T, int V>() {
    launch<T, V, 4, 2>(scratch, count,
                       {{source<T>(f.in.lane0), source<T>(f.in.lane1), source<T>(f.in.attn), source<T>(f.in.mlp)},
                        {sink<T>(f.out.lane0), sink<T>(f.out.lane1)},
                        {factors},
                        {{0, -2, 2, 4}, {-2, 1, 3, 5}},
                        0});
  });
}

void backward(const LaneMix&, const Backward<LaneMix>& b) {
  Scratch scratch(b.queue);
  const int64_t count = b.in.lane0.numel();
  const float* factors = lane_factors(scratch, b.in);
  with_type(b.in.lane0, vectors(b, count), [&]<class T, int V>() {
    const Source<T> g0 = source<T>(b.dout.lane0), g1 = source<T>(b.dout.lane1);
    launch<T, V, 2, 4>(scratch, count,
                       {{g0, g1},
                        {sink<T>(b.din.lane0), sink<T>(b.din.lane1), sink<T>(b.din.attn), sink<T>(b.din.mlp)},
                        {factors},
                        {{0, -2}, {-2, 1}, {2, 3}, {4, 5}},
                        0});
    const Source<T> attn = source<T>(b.in.attn), mlp = source<T>(b.in.mlp);
    const Pairs<T> pairs{{g0, g1, g0, g1, g0, g1}, {source<T>(b.in.lane0), source<T>(b.in.lane1), attn, attn, mlp, mlp}};
    add_columns(scratch, dots<T, V, 6>(scratch, count, pairs), {{b.din.resid, 2}, {b.din.post, 4}});
  });
}

}  // namespace fairway::cuda
