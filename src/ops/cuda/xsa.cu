// z_h = y_h − (y_h·u)u, u = v/‖v‖ of the token's own value. L lanes take one kv head of one row and all its query heads.
#include "ops/cuda/cuda.h"
#include "ops/cuda/head_rows.cuh"
#include "ops/cuda/heads.cuh"

namespace fairway::cuda {
namespace {

constexpr float kNormFloor = 1e-12f;

struct Groups {
  unsigned items, group, size;  // items = rows·K, group = H/K
  Divisor kv_heads;
  unsigned pitch, gradient_pitch;  // between rows of v and of dv; y and z are dense
  __device__ int64_t query(unsigned item, unsigned h) const { return int64_t{item} * group + h; }
  __device__ int64_t value(unsigned item, unsigned row_pitch) const {
    const unsigned row = kv_heads.quotient(item);
    return int64_t{row} * row_pitch + (item - row * kv_heads.value) * size;
  }
};

template <int V>
__device__ float dot_of(const float (&a)[V], const float (&b)[V]) {
  float total = 0;
#pragma unroll
  for (int k = 0; k < V; ++k) total += a[k] * b[k];
  return total;
}

template <class T, int V, int L>
__device__ float norm_of(Source<T> v, int64_t value, unsigned lane, unsigned size) {
  float x[V], squares = 0;
  for (unsigned c = lane * V; c < size; c += L * V) {
    v.load(value + c, x);
#pragma unroll
    for (int k = 0; k < V; ++k) squares += x[k] * x[k];
  }
  return sqrtf(group_sum<L>(squares));
}

template <class T, int V, int L>
__device__ float dot(Source<T> a, int64_t at, Source<T> b, int64_t bt, unsigned lane, unsigned size) {
  float x[V], y[V], total = 0;
  for (unsigned c = lane * V; c < size; c += L * V) {
    a.load(at + c, x);
    b.load(bt + c, y);
#pragma unroll
    for (int k = 0; k < V; ++k) total += x[k] * y[k];
  }
  return group_sum<L>(total);
}

template <class T, int V, int L>
__global__ void xsa_forward(Groups g, Source<T> y, Source<T> v, Sink<T> z, Sink<float> saved_dot) {
  const unsigned lane = threadIdx.x % L;
  for (auto i = static_cast<unsigned>(first_group<L>()); i < g.items; i += static_cast<unsigned>(group_stride<L>())) {
    const int64_t value = g.value(i, g.pitch);
    const float inverse = 1.0f / fmaxf(norm_of<T, V, L>(v, value, lane, g.size), kNormFloor);
    for (unsigned h = 0; h < g.group; ++h) {
      const int64_t head = g.query(i, h) * g.size;
      const float c = dot<T, V, L>(y, head, v, value, lane, g.size) * inverse;
      if (lane == 0) saved_dot.put(g.query(i, h), c);
      float x[V], u[V];
      for (unsigned e = lane * V; e < g.size; e += L * V) {
        y.load(head + e, x);
        v.load(value + e, u);
#pragma unroll
        for (int k = 0; k < V; ++k) x[k] -= c * u[k] * inverse;
        z.store(head + e, x);
      }
    }
  }
}

// dy = g − a·u, dv = −(1/‖v‖)·Σ_h [a·z + c·(g − a·u)]; where the norm is at its floor it is a constant.
template <class T, int V, int L>
__global__ void xsa_backward(Groups g, Source<T> v, Source<T> z, Source<float> saved_dot, Source<T> dz, Sink<T> dy,
                             Sink<T> dv) {
  const unsigned lane = threadIdx.x % L;
  for (auto i = static_cast<unsigned>(first_group<L>()); i < g.items; i += static_cast<unsigned>(group_stride<L>())) {
    const int64_t value = g.value(i, g.pitch), to = g.value(i, g.gradient_pitch);
    const float norm = norm_of<T, V, L>(v, value, lane, g.size), inverse = 1.0f / fmaxf(norm, kNormFloor);
    const bool clamped = norm <= kNormFloor;
    for (unsigned begin = 0; begin < g.size; begin += L * V) {  // every lane of the group takes every turn, for the sums
      const unsigned e = begin + lane * V;
      const bool inside = e < g.size;
      float total[V] = {}, x[V], u[V], out[V];
      if (inside) v.load(value + e, u);
      for (unsigned h = 0; h < g.group; ++h) {
        const int64_t head = g.query(i, h) * g.size;
        const float a = dot<T, V, L>(dz, head, v, value, lane, g.size) * inverse, c = saved_dot[g.query(i, h)];
        if (!inside) continue;
        dz.load(head + e, x);
        z.load(head + e, out);
#pragma unroll
        for (int k = 0; k < V; ++k) {
          const float along = u[k] * inverse;
          total[k] += clamped ? a * (out[k] + c * along) + c * x[k] : a * out[k] + c * (x[k] - a * along);
          x[k] -= a * along;
        }
        dy.store(head + e, x);
      }
      if (!inside) continue;
#pragma unroll
      for (int k = 0; k < V; ++k) total[k] *= -inverse;
      dv.store(to + e, total);
    }
  }
}

// The same for heads that fill their lanes exactly: every tensor is read once.
template <class T, int V, int L>
__global__ void xsa_forward_whole(Groups g, Source<T> y, Source<T> v, Sink<T> z, Sink<float> saved_dot) {
  const unsigned lane = threadIdx.x % L;
  for (auto i = static_cast<unsigned>(first_group<L>()); i < g.items; i += static_cast<unsigned>(group_stride<L>())) {
    float u[V], x[V];
    v.load(g.value(i, g.pitch) + lane * V, u);
    const float inverse = 1.0f / fmaxf(sqrtf(group_sum<L>(dot_of(u, u))), kNormFloor);
    for (unsigned h = 0; h < g.group; ++h) {
      const int64_t head = g.query(i, h) * (L * V) + lane * V;
      y.load(head, x);
      const float c = group_sum<L>(dot_of(x, u)) * inverse;
      if (lane == 0) saved_dot.put(g.query(i, h), c);
#pragma unroll
      for (int k = 0; k < V; ++k) x[k] -= c * u[k] * inverse;
      z.store(head, x);
    }
  }
}

template <class T, int V, int L>
__global__ void xsa_backward_whole(Groups g, Source<T> v, Source<T> z, Source<float> saved_dot, Source<T> dz, Sink<T> dy,
                                   Sink<T> dv) {
  const unsigned lane = threadIdx.x % L;
  for (auto i = static_cast<unsigned>(first_group<L>()); i < g.items; i += static_cast<unsigned>(group_stride<L>())) {
    float u[V], x[V], out[V], total[V] = {};
    v.load(g.value(i, g.pitch) + lane * V, u);
    const float norm = sqrtf(group_sum<L>(dot_of(u, u))), inverse = 1.0f / fmaxf(norm, kNormFloor);
    const bool clamped = norm <= kNormFloor;
    for (unsigned h = 0; h < g.group; ++h) {
      const int64_t head = g.query(i, h) * (L * V) + lane * V;
      dz.load(head, x);
      z.load(head, out);
      const float a = group_sum<L>(dot_of(x, u)) * inverse, c = saved_dot[g.query(i, h)];
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const float along = u[k] * inverse;
        total[k] += clamped ? a * (out[k] + c * along) + c * x[k] : a * out[k] + c * (x[k] - a * along);
        x[k] -= a * along;
      }
      dy.store(head, x);
    }
#pragma unroll
    for (int k = 0; k < V; ++k) total[k] *= -inverse;
    dv.store(g.value(i, g.gradient_pitch) + lane * V, total);
  }
}

Groups groups_of(const Xsa& op, const Tensor& y, const Tensor& v, const Tensor& dv) {
  require(y.rows() * op.kv_heads < (int64_t{1} << 31), Xsa::name, "a micro-batch on the device has fewer than 2^31 heads");
  const auto count = [](int64_t x) { return static_cast<unsigned>(x); };
  return {count(y.rows() * op.kv_heads),
          count(op.heads / op.kv_heads),
          count(y.cols() / op.heads),
          Divisor(op.kv_heads),
          count(pitch_of(v)),
          dv ? count(pitch_of(dv)) : 0};
}

// Whether rows go through head_rows.cuh: eight query heads on four of 64 in bf16.
bool by_rows(const Xsa& op, const Tensor& y, const Tensor& v, bool vectorized) {
  return vectorized && y.spec.dtype == DType::bf16 && op.heads == 8 && op.kv_heads == 4 && y.cols() == 512 &&
         pitch_of(v) % 8 == 0;
}
XsaRows xsa_rows(const Tensor& v) {
  return {pointer<bf16>(v), static_cast<unsigned>(v.rows()), static_cast<unsigned>(pitch_of(v))};
}
unsigned row_blocks(const Tensor& y) { return static_cast<unsigned>((y.rows() + kWarps - 1) / kWarps); }

}  // namespace

void forward(const Xsa& op, const Forward<Xsa>& f) {
  Scratch scratch(f.queue);
  if (by_rows(op, f.in.y, f.in.v, vectors(f, f.in.v.cols()))) {
    xsa_rows_forward<2><<<row_blocks(f.in.y), kThreads, 0, scratch.stream()>>>(
        xsa_rows(f.in.v), pointer<bf16>(f.in.y), pointer<bf16>(f.out.z), pointer<float>(f.saved.dot));
    return check_launch("xsa by rows");
  }
  const Groups g = groups_of(op, f.in.y, f.in.v, {});
  with_heads(f.in.y, vectors(f, f.in.v.cols()), g.size, [&]<class T, int V, int L>() {
    const auto kernel = V > 1 ? xsa_forward_whole<T, V, L> : xsa_forward<T, V, L>;
    kernel<<<blocks_for(scratch.context(), g.items, kThreads / L), kThreads, 0, scratch.stream()>>>(
        g, source<T>(f.in.y), source<T>(f.in.v), sink<T>(f.out.z), sink<float>(f.saved.dot));
  });
  check_launch("xsa");
}

void backward(const Xsa& op, const Backward<Xsa>& b) {
  Scratch scratch(b.queue);
  if (b.dout.z && (!b.din.v || pitch_of(b.din.v) % 8 == 0) && by_rows(op, b.in.y, b.in.v, vectors(b, b.in.v.cols()))) {
    xsa_rows_backward<2><<<row_blocks(b.in.y), kThreads, 0, scratch.stream()>>>(
        xsa_rows(b.in.v), pointer<bf16>(b.out.z), pointer<float>(b.saved.dot), pointer<bf16>(b.dout.z), sink<bf16>(b.din.y),
        sink<bf16>(b.din.v), b.din.v ? static_cast<unsigned>(pitch_of(b.din.v)) : 0);
    return check_launch("xsa' by rows");
  }
  const Groups g = groups_of(op, b.in.y, b.in.v, b.din.v);
  with_heads(b.in.y, vectors(b, b.in.v.cols()), g.size, [&]<class T, int V, int L>() {
    const auto kernel = V > 1 ? xsa_backward_whole<T, V, L> : xsa_backward<T, V, L>;
    kernel<<<blocks_for(scratch.context(), g.items, kThreads / L), kThreads, 0, scratch.stream()>>>(
        g, source<T>(b.in.v), source<T>(b.out.z), source<float>(b.saved.dot), source<T>(b.dout.z), sink<T>(b.din.y),
        sink<T>(b.din.v));
  });
  check_launch("xsa'");
}

}  // namespace fairway::cuda
