// Gradients of the six scalars are sums over everything: a partial for each block, added in order.
#include "ops/cuda/combine.cuh"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

// resid (2) and post (2, 2) one after another, as the combination's factors.
__global__ void join_factors(Source<float> resid, Source<float> post, float* out) {
  out[threadIdx.x] = threadIdx.x < 2 ? resid[threadIdx.x] : post[threadIdx.x - 2];
}

template <class T>
struct LaneGradients {
  Source<T> g0, g1, lane0, lane1, attn, mlp;
  Sink<T> dlane0, dlane1, dattn, dmlp;
};

// One pass over all ten streams; sums of the six scalars' gradients in registers.
template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    lane_backward(int64_t count, LaneGradients<T> a, const float* factors, Partials partials) {
  __shared__ float accumulators[kWarps * 6];
  const float resid0 = factors[0], resid1 = factors[1], attn0 = factors[2], attn1 = factors[3], mlp0 = factors[4],
              mlp1 = factors[5];
  float sums[6] = {};
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    const Pack<T, V> g0 = a.g0.template pack<V>(i), g1 = a.g1.template pack<V>(i), lane0 = a.lane0.template pack<V>(i),
                     lane1 = a.lane1.template pack<V>(i), attn = a.attn.template pack<V>(i), mlp = a.mlp.template pack<V>(i);
    float to_lane0[V], to_lane1[V], to_attn[V], to_mlp[V];
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const float x = to_float(g0.at[k]), y = to_float(g1.at[k]), heads = to_float(attn.at[k]), hidden = to_float(mlp.at[k]);
      to_lane0[k] = resid0 * x;
      to_lane1[k] = resid1 * y;
      to_attn[k] = attn0 * x + attn1 * y;
      to_mlp[k] = mlp0 * x + mlp1 * y;
      sums[0] += x * to_float(lane0.at[k]);
      sums[1] += y * to_float(lane1.at[k]);
      sums[2] += x * heads;
      sums[3] += y * heads;
      sums[4] += x * hidden;
      sums[5] += y * hidden;
    }
    a.dlane0.store(i, to_lane0);
    a.dlane1.store(i, to_lane1);
    a.dattn.store(i, to_attn);
    a.dmlp.store(i, to_mlp);
  }
#pragma unroll
  for (int n = 0; n < 6; ++n) {
    const float total = warp_sum(sums[n]);
    if (lane_id() == 0) accumulators[warp_id() * 6 + n] = total;
  }
  leave_partials(accumulators, kWarps, partials);
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
    launch_combine<T, V, 4, 2>(scratch, count,
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
    const int blocks = column_blocks(scratch.context(), count / V, kThreads);
    const Partials partials{scratch.take<float>(blocks * 6), blocks, 6};
    const LaneGradients<T> args{source<T>(b.dout.lane0), source<T>(b.dout.lane1), source<T>(b.in.lane0), source<T>(b.in.lane1),
                                source<T>(b.in.attn),    source<T>(b.in.mlp),     sink<T>(b.din.lane0),  sink<T>(b.din.lane1),
                                sink<T>(b.din.attn),     sink<T>(b.din.mlp)};
    lane_backward<T, V><<<blocks, kThreads, 0, scratch.stream()>>>(count, args, factors, partials);
    check_launch("lane_mix'");
    add_columns(scratch, partials, {{b.din.resid, 2}, {b.din.post, 4}});
  });
}

}  // namespace fairway::cuda
