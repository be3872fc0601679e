// Plain ops on flat tensors: fills, norms, clipping, AdamW, the two halves of Muon, averages. Step scalars are read on the
// device; sums go over a fixed number of blocks.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

__device__ inline double slot(const double* scalars, StepScalar which) { return scalars[static_cast<int>(which)]; }
__device__ inline int64_t first_index() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline int64_t index_stride() { return int64_t{gridDim.x} * blockDim.x; }

__global__ void fill(int64_t count, float value, float* x) {
  for (int64_t i = first_index(); i < count; i += index_stride()) x[i] = value;
}

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

__global__ void clip_coefficient(int64_t count, double max_norm, const double* totals, double* clip) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += totals[i];
  const double norm = sqrt(total);
  clip[0] = max_norm > 0 ? fmin(1.0, max_norm / (norm + 1e-6)) : 1.0;
  clip[1] = norm;
}

template <class S, class T, int V>
__global__ void accumulate(int64_t count, double factor, const double* coefficient, Source<S> from, Sink<T> to) {
  const auto scale = static_cast<float>(factor * (coefficient != nullptr ? coefficient[0] : 1.0));
  for (int64_t i = first_index() * V; i < count; i += index_stride() * V) {
    float x[V];
    from.load(i, x);
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] *= scale;
    to.store(i, x);
  }
}

__global__ void adamw(int64_t count, AdamWUpdate op, float* param, const float* grad, float* m, float* v, const double* clip,
                      const double* scalars) {
  const double lr = op.learning_rate * slot(scalars, StepScalar::learning_rate_scale), t = slot(scalars, StepScalar::adam_step);
  const double c1 = 1 - pow(op.beta1, t), c2 = sqrt(1 - pow(op.beta2, t));
  const auto b1 = static_cast<float>(op.beta1), b2 = static_cast<float>(op.beta2), eps = static_cast<float>(op.eps);
  const auto r1 = static_cast<float>(1 - op.beta1), r2 = static_cast<float>(1 - op.beta2);
  const auto keep = static_cast<float>(1 - lr * op.weight_decay), step = static_cast<float>(lr / c1);
  const auto inverse = static_cast<float>(1 / c2), factor = static_cast<float>(clip != nullptr ? clip[0] : 1.0);
  for (int64_t i = first_index(); i < count; i += index_stride()) {
    const float g = factor * grad[i], first = b1 * m[i] + r1 * g, second = b2 * v[i] + r2 * g * g;
    m[i] = first;
    v[i] = second;
    param[i] = param[i] * keep - step * first / (sqrtf(second) * inverse + eps);
  }
}

template <class U, int V>
__global__ void muon_momentum(int64_t rows, int64_t width, bool row_norm, Source<float> grad, float* buffer, const double* clip,
                              const double* scalars, Sink<U> u) {
  const auto momentum = static_cast<float>(slot(scalars, StepScalar::momentum));
  const auto factor = static_cast<float>(clip != nullptr ? clip[0] : 1.0);
  const Source<float> stored{buffer};
  const Sink<float> store{buffer, false};
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < rows; m += int64_t{gridDim.x} * kWarps) {
    float g[V], b[V], squares = 0;
    for (int64_t c = lane_id() * V; c < width; c += 32 * V) {
      grad.load(m * width + c, g);
      stored.load(m * width + c, b);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        b[k] = momentum * b[k] + factor * g[k];
        g[k] = factor * g[k] + momentum * b[k];
        squares += g[k] * g[k];
      }
      store.store(m * width + c, b);
      if (!row_norm) u.store(m * width + c, g);
    }
    if (!row_norm) continue;
    const float divisor = fmaxf(sqrtf(warp_sum(squares)), 1e-7f);
    for (int64_t c = lane_id() * V; c < width; c += 32 * V) {
      grad.load(m * width + c, g);
      stored.load(m * width + c, b);
#pragma unroll
      for (int k = 0; k < V; ++k) g[k] = (factor * g[k] + momentum * b[k]) / divisor;
      u.store(m * width + c, g);
    }
  }
}

template <class U, int V>
__global__ void muon_apply(int64_t count, double rate, double decay, float shape_scale, float* param, Source<U> o,
                           const double* scalars) {
  const double lr = rate * slot(scalars, StepScalar::learning_rate_scale);
  const auto keep = static_cast<float>(1 - lr * decay), step = static_cast<float>(lr) * shape_scale;
  const Source<float> in{param};
  const Sink<float> out{param, false};
  for (int64_t i = first_index() * V; i < count; i += index_stride() * V) {
    float p[V], x[V];
    in.load(i, p);
    o.load(i, x);
#pragma unroll
    for (int k = 0; k < V; ++k) p[k] = __fmaf_rn(p[k], keep, -__fmul_rn(step, x[k]));  // the same bits for either type of o
    out.store(i, p);
  }
}

template <int V>
__global__ void lerp(int64_t count, double fixed, const double* weight, float* target, Source<float> from) {
  const double w = weight != nullptr ? *weight : fixed;
  const auto keep = static_cast<float>(1 - w), take = static_cast<float>(w);
  const Source<float> in{target};
  const Sink<float> out{target, false};
  for (int64_t i = first_index() * V; i < count; i += index_stride() * V) {
    float t[V], x[V];
    in.load(i, t);
    from.load(i, x);
#pragma unroll
    for (int k = 0; k < V; ++k) t[k] = keep * t[k] + take * x[k];
    out.store(i, t);
  }
}

}  // namespace

void forward(const Fill& op, const Forward<Fill>& f) {
  Scratch scratch(f.queue);
  if (op.value == 0) {
    check(cudaMemsetAsync(f.in.x.data, 0, f.in.x.spec.bytes(), scratch.stream()), "cudaMemsetAsync");
    return;
  }
  fill<<<blocks_for(scratch.context(), f.in.x.numel()), kThreads, 0, scratch.stream()>>>(
      f.in.x.numel(), static_cast<float>(op.value), pointer<float>(f.in.x));
  check_launch("fill");
}

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

void forward(const ClipCoefficient& op, const Forward<ClipCoefficient>& f) {
  Scratch scratch(f.queue);
  clip_coefficient<<<1, 1, 0, scratch.stream()>>>(f.in.totals.numel(), op.max_norm, pointer<double>(f.in.totals),
                                                  pointer<double>(f.in.clip));
  check_launch("clip_coefficient");
}

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& f) {
  Scratch scratch(f.queue);
  Tensor target = f.in.target;
  target.accumulate = !op.overwrite;
  const auto launch = [&]<class S, class T, int V>() {
    accumulate<S, T, V><<<blocks_for(scratch.context(), target.numel() / V), kThreads, 0, scratch.stream()>>>(
        target.numel(), op.factor, pointer<double>(f.in.coefficient), source<S>(f.in.source), sink<T>(target));
  };
  with_type(f.in.source, vectors(f, target.numel()), [&]<class S, int V>() {
    if (target.spec.dtype == kDType<S>)
      launch.template operator()<S, S, V>();
    else  // bf16 made float: what ranks exchange
      launch.template operator()<S, float, V == 1 ? 1 : 4>();
  });
  check_launch("accumulate_scaled");
}

void forward(const AdamWUpdate& op, const Forward<AdamWUpdate>& f) {
  Scratch scratch(f.queue);
  adamw<<<blocks_for(scratch.context(), f.in.param.numel()), kThreads, 0, scratch.stream()>>>(
      f.in.param.numel(), op, pointer<float>(f.in.param), pointer<float>(f.in.grad), pointer<float>(f.in.m),
      pointer<float>(f.in.v), pointer<double>(f.in.clip), pointer<double>(f.in.scalars));
  check_launch("adamw_update");
}

void forward(const MuonMomentum& op, const Forward<MuonMomentum>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.grad.rows(), width = f.in.grad.cols();
  with_type(f.out.u, vectors(f, width), [&]<class T, int V>() {
    constexpr int kWide = V == 1 ? 1 : 4;  // the float side is the wider one
    muon_momentum<T, kWide><<<blocks_for(scratch.context(), rows, kWarps), kThreads, 0, scratch.stream()>>>(
        rows, width, op.row_norm, source<float>(f.in.grad), pointer<float>(f.in.buffer), pointer<double>(f.in.clip),
        pointer<double>(f.in.scalars), sink<T>(f.out.u));
  });
  check_launch("muon_momentum");
}

void forward(const MuonApply& op, const Forward<MuonApply>& f) {
  Scratch scratch(f.queue);
  const int64_t count = f.in.param.numel();
  const double ratio = static_cast<double>(f.in.param.dim(1)) / static_cast<double>(f.in.param.dim(2));
  const auto shape_scale = static_cast<float>(sqrt(ratio > 1 ? ratio : 1));
  with_type(f.in.o, vectors(f, count), [&]<class T, int V>() {
    constexpr int kWide = V == 1 ? 1 : 4;
    muon_apply<T, kWide><<<blocks_for(scratch.context(), count / kWide), kThreads, 0, scratch.stream()>>>(
        count, op.learning_rate, op.weight_decay, shape_scale, pointer<float>(f.in.param), source<T>(f.in.o),
        pointer<double>(f.in.scalars));
  });
  check_launch("muon_apply");
}

void forward(const Lerp& op, const Forward<Lerp>& f) {
  Scratch scratch(f.queue);
  const int64_t count = f.in.target.numel();
  const double* weight = op.slot ? pointer<double>(f.in.scalars) + static_cast<int>(*op.slot) : nullptr;
  with_type(f.in.target, vectors(f, count), [&]<class T, int V>() {
    constexpr int kWide = V == 1 ? 1 : 4;
    lerp<kWide><<<blocks_for(scratch.context(), count / kWide), kThreads, 0, scratch.stream()>>>(
        count, op.weight, weight, pointer<float>(f.in.target), source<float>(f.in.source));
  });
  check_launch("lerp");
}

}  // namespace fairway::cuda
