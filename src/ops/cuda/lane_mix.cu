// Gradients of the six scalars are sums over everything: a partial for each block, added in order.
#include "ops/cuda/combine.cuh"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
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
    const Source<T> g0 = source<T>(b.dout.lane0), g1 = source<T>(b.dout.lane1);
    launch_combine<T, V, 2, 4>(scratch, count,
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
