// MLP with LeakyReLU(½)². In bf16 the place of act_grad keeps pre instead, whose slope is exact and costs no memory traffic to
// rebuild; in float it is what the op promises.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/mlp_fused.h"
#include "ops/cuda/project.h"

namespace fairway::cuda {
namespace {

__device__ inline float slope_of(float pre) { return pre > 0 ? 2 * pre : 0.5f * pre; }

template <class T, int V, bool KeepPre>
__global__ void activate(int64_t count, T* pre_or_slope, Sink<T> post) {
  const Source<T> in{pre_or_slope};
  const Sink<T> slopes{pre_or_slope, false};
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    float x[V], slope[V];
    in.load(i, x);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      slope[k] = slope_of(x[k]);
      x[k] *= 0.5f * slope[k];
    }
    post.store(i, x);
    if constexpr (!KeepPre) slopes.store(i, slope);
  }
}

template <class T, int V, bool KeepPre>
__global__ void multiply_slope(int64_t count, Source<T> pre_or_slope, T* gradient) {
  const Source<T> in{gradient};
  const Sink<T> out{gradient, false};
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    float x[V], s[V];
    in.load(i, x);
    pre_or_slope.load(i, s);
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] *= KeepPre ? slope_of(s[k]) : s[k];
    out.store(i, x);
  }
}

void activate_hidden(Scratch& scratch, const Forward<Mlp>& f) {
  const int64_t count = f.saved.post.numel();
  with_type(f.in.m, vectors(f, count), [&]<class T, int V>() {
    activate<T, V, sizeof(T) == 2><<<blocks_for(scratch.context(), count / V), kThreads, 0, scratch.stream()>>>(
        count, pointer<T>(f.saved.act_grad), sink<T>(f.saved.post));
  });
  check_launch("activate");
}

void scale_by_slope(Scratch& scratch, const Backward<Mlp>& b, const Tensor& dpre) {
  const int64_t count = dpre.numel();
  with_type(b.in.m, vectors(b, count), [&]<class T, int V>() {
    multiply_slope<T, V, sizeof(T) == 2><<<blocks_for(scratch.context(), count / V), kThreads, 0, scratch.stream()>>>(
        count, source<T>(b.saved.act_grad), pointer<T>(dpre));
  });
  check_launch("multiply_slope");
}

}  // namespace

void forward(const Mlp&, const Forward<Mlp>& f) {
  Scratch scratch(f.queue);
  if (!fused_up(scratch, f.in.m, f.in.up, f.saved.act_grad, f.saved.post)) {
    multiply(scratch, Layout::nt, f.in.m, f.in.up, f.saved.act_grad);
    activate_hidden(scratch, f);
  }
  project_into(scratch, f.in.x, f.saved.post, scaled_weight(scratch, f.in.down, f.in.scale), f.out.y);
}

void backward(const Mlp&, const Backward<Mlp>& b) {
  Scratch scratch(b.queue);
  project_gradients(scratch, b.dout.y, b.saved.post, b.in.down, b.in.scale, b.din.down, b.din.scale);
  if (b.din.m || b.din.up) {
    Tensor dpre = b.saved.act_grad;
    dpre.data = b.workspace.data;
    const Tensor down = scaled_weight(scratch, b.in.down, b.in.scale);
    if (!fused_down_gradient(scratch, b.dout.y, down, b.saved.act_grad, dpre)) {
      multiply(scratch, Layout::nn, b.dout.y, down, dpre);
      scale_by_slope(scratch, b, dpre);
    }
    multiply(scratch, Layout::tn, dpre, b.in.m, b.din.up);
    multiply(scratch, Layout::nn, dpre, b.in.up, b.din.m);
  }
  pass_through(scratch, b.dout.y, b.din.x);
}

}  // namespace fairway::cuda
