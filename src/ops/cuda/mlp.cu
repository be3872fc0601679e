// MLP with LeakyReLU(½)². In float the op keeps what it promises; in bf16 the place of act_grad keeps signs (mlp_saved.h), or
// nothing where no gradient is wanted.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/mlp_fused.h"
#include "ops/cuda/scaled_weights.h"

namespace fairway::cuda {
namespace {

__device__ inline float slope_of(float pre) { return pre > 0 ? 2 * pre : 0.5f * pre; }

// act_grad holds pre at first.
template <int V>
__global__ void activate(int64_t count, float* act_grad, Sink<float> post) {
  const Source<float> in{act_grad};
  const Sink<float> slopes{act_grad, false};
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    float x[V], slope[V];
    in.load(i, x);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      slope[k] = slope_of(x[k]);
      x[k] *= 0.5f * slope[k];
    }
    post.store(i, x);
    slopes.store(i, slope);
  }
}

template <int V>
__global__ void multiply_slope(int64_t count, Source<float> act_grad, float* gradient) {
  const Source<float> in{gradient};
  const Sink<float> out{gradient, false};
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    float x[V], s[V];
    in.load(i, x);
    act_grad.load(i, s);
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] *= s[k];
    out.store(i, x);
  }
}

// Eight bf16 a thread, whose signs are a byte: element i is bit i % 8 of byte i / 8.
template <int V, class Body>
__device__ void for_bytes(int64_t count, Body&& body) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i * 8 < count; i += int64_t{gridDim.x} * blockDim.x)
#pragma unroll
    for (int k = 0; k < 8; k += V)
      if (i * 8 + k < count) body(i, k);
}

// post holds pre at first.
template <int V>
__global__ void activate_bf16(int64_t count, bf16* post, uint8_t* signs) {
  const Source<bf16> in{post};
  const Sink<bf16> out{post, false};
  unsigned byte = 0;
  for_bytes<V>(count, [&](int64_t i, int k) {
    float x[V];
    in.load(i * 8 + k, x);
    if (k == 0) byte = 0;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      byte |= (x[v] < 0 ? 1u : 0u) << (k + v);
      x[v] *= 0.5f * slope_of(x[v]);
    }
    out.store(i * 8 + k, x);
    if (signs != nullptr && (k + V == 8 || i * 8 + k + V >= count)) signs[i] = static_cast<uint8_t>(byte);
  });
}

template <int V>
__global__ void multiply_slope_bf16(int64_t count, Source<bf16> post, const uint8_t* signs, bf16* gradient) {
  const Source<bf16> in{gradient};
  const Sink<bf16> out{gradient, false};
  for_bytes<V>(count, [&](int64_t i, int k) {
    float x[V], p[V];
    in.load(i * 8 + k, x);
    post.load(i * 8 + k, p);
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] *= sqrtf(p[v]) * ((signs[i] >> (k + v) & 1) != 0 ? -1.0f : 2.0f);
    out.store(i * 8 + k, x);
  });
}

// body.operator()<V>(blocks).
template <class Body>
void with_vectors(Scratch& scratch, bool vectorized, int64_t threads, Body&& body) {
  const int blocks = blocks_for(scratch.context(), threads);
  vectorized ? body.template operator()<true>(blocks) : body.template operator()<false>(blocks);
  check_launch("the MLP's activation");
}

void activate_hidden(Scratch& scratch, const Forward<Mlp>& f) {
  const int64_t count = f.saved.post.numel();
  with_vectors(scratch, vectors(f, count), count / 4, [&]<bool Wide>(int blocks) {
    if (f.in.m.spec.dtype == DType::bf16)
      activate_bf16<Wide ? 8 : 1><<<blocks, kThreads, 0, scratch.stream()>>>(count, pointer<bf16>(f.saved.post),
                                                                             reinterpret_cast<uint8_t*>(f.saved.act_grad.data));
    else
      activate<Wide ? 4 : 1>
          <<<blocks, kThreads, 0, scratch.stream()>>>(count, pointer<float>(f.saved.act_grad), sink<float>(f.saved.post));
  });
}

void scale_by_slope(Scratch& scratch, const Backward<Mlp>& b, const Tensor& dpre) {
  const int64_t count = dpre.numel();
  with_vectors(scratch, vectors(b, count), count / 4, [&]<bool Wide>(int blocks) {
    if (b.in.m.spec.dtype == DType::bf16)
      multiply_slope_bf16<Wide ? 8 : 1><<<blocks, kThreads, 0, scratch.stream()>>>(
          count, source<bf16>(b.saved.post), reinterpret_cast<const uint8_t*>(b.saved.act_grad.data), pointer<bf16>(dpre));
    else
      multiply_slope<Wide ? 4 : 1>
          <<<blocks, kThreads, 0, scratch.stream()>>>(count, source<float>(b.saved.act_grad), pointer<float>(dpre));
  });
}

// The gradient of pre, in the workspace.
Tensor hidden_gradient(Scratch& scratch, const Backward<Mlp>& b) {
  Tensor dpre = b.saved.post;
  dpre.data = b.workspace.data;
  if (suits_fused_mlp(scratch.context(), b.in.m, b.in.up.rows())) {
    fused_down_gradient(scratch, {b.dout.y, b.in.down, b.in.scale, b.saved.post, b.saved.act_grad, dpre});
  } else {
    multiply(scratch, ProductLayout::nn, b.dout.y, scaled_weight(scratch, b.in.down, b.in.scale), dpre);
    scale_by_slope(scratch, b, dpre);
  }
  return dpre;
}

}  // namespace

void forward(const Mlp&, const Forward<Mlp>& f) {
  Scratch scratch(f.queue);
  if (suits_fused_mlp(scratch.context(), f.in.m, f.in.up.rows())) {
    fused_up(scratch, f.in.m, f.in.up, f.saved.post, f.saved.act_grad);
  } else {
    multiply(scratch, ProductLayout::nt, f.in.m, f.in.up, f.in.m.spec.dtype == DType::bf16 ? f.saved.post : f.saved.act_grad);
    activate_hidden(scratch, f);
  }
  project_into(scratch, f.in.x, f.saved.post, scaled_weight(scratch, f.in.down, f.in.scale), f.out.y);
}

void backward(const Mlp&, const Backward<Mlp>& b) {
  Scratch scratch(b.queue);
  project_gradients(scratch, b.dout.y, b.saved.post, b.in.down, b.in.scale, b.din.down, b.din.scale);
  if (b.din.m || b.din.up) {
    const Tensor dpre = hidden_gradient(scratch, b);
    multiply(scratch, ProductLayout::tn, dpre, b.in.m, b.din.up);
    multiply(scratch, ProductLayout::nn, dpre, b.in.up, b.din.m);
  }
  pass_through(scratch, b.dout.y, b.din.x);
}

}  // namespace fairway::cuda
