// Gradients of the mix are column sums (columns.h).
#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/mix_norm_fused.h"
#include "ops/cuda/row_pieces.cuh"

namespace fairway::cuda {
namespace {

template <class T, int V>
__device__ void mixed_values(float (&v)[V], Source<T> x, Source<T> x0, Source<float> mix, const NormRow& r, int64_t row,
                             int64_t c) {
  float other[V], m0[V], m1[V];
  x.load(row + c, v);
  x0.load(row + c, other);
  mix.load(c, m0);
  mix.load(r.width + c, m1);
#pragma unroll
  for (int k = 0; k < V; ++k) v[k] = m0[k] * v[k] + m1[k] * other[k];
}

template <class T, int V, int N>
__global__ void mix_forward(NormRow r, Source<T> x, Source<T> x0, Source<float> mix, Sink<T> mixed, Sink<T> normed,
                            Sink<float> rstd) {
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < r.rows; m += int64_t{gridDim.x} * kWarps) {
    const int64_t row = m * r.width;
    float v[kPieces<N>][V], squares = 0;
    if constexpr (N > 0) each_piece<V, N>(r.width, [&](int n, int c) { mixed_values(v[n], x, x0, mix, r, row, c); });
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) mixed_values(v[n], x, x0, mix, r, row, c);
      mixed.store(row + c, v[n]);
      squares = add_squares(v[n], squares);
    });
    const float inverse = inverse_rms(warp_sum(squares), r);
    if (lane_id() == 0) rstd.put(m, inverse);
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) mixed_values(v[n], x, x0, mix, r, row, c);
#pragma unroll
      for (int k = 0; k < V; ++k) v[n][k] *= r.scale * inverse;
      normed.store(row + c, v[n]);
    });
  }
}

template <class T>
struct MixGradients {
  Source<T> x, x0, g_mixed, g_normed;
  Source<float> mix, rstd;
  Sink<T> dx, dx0;
};

// Each warp keeps its own column sums of g⊙x and g⊙x0: in registers where its rows are, else in shared memory.
template <class T, int V, int N>
__global__ void mix_backward(NormRow r, MixGradients<T> a, int64_t padded, Partials partials) {
  extern __shared__ float accumulators[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  float* sums = accumulators + warp_id() * 2 * padded;
  float held[kPieces<N>][V] = {}, held0[kPieces<N>][V] = {};
  for (int64_t c = lane_id(); c < 2 * padded; c += 32) sums[c] = 0;
  __syncwarp();
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * warps + warp_id(); m < r.rows; m += int64_t{gridDim.x} * warps) {
    const int64_t row = m * r.width;
    const float inverse = a.rstd[m];
    // Kept as they lie in memory: with fewer registers more warps hide the second pass's reads.
    Pack<T, V> v[kPieces<N>], v0[kPieces<N>], d[kPieces<N>], g[kPieces<N>];
    const auto fetch = [&](int n, int c) {
      v[n] = a.x.template pack<V>(row + c);
      v0[n] = a.x0.template pack<V>(row + c);
      d[n] = a.g_normed.template pack<V>(row + c);
      g[n] = a.g_mixed.template pack<V>(row + c);
    };
    if constexpr (N > 0) each_piece<V, N>(r.width, fetch);
    float along = 0, m0[V], m1[V];
    const auto weights = [&](int c) {
      a.mix.load(c, m0);
      a.mix.load(r.width + c, m1);
    };
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) fetch(n, c);
      weights(c);
#pragma unroll
      for (int k = 0; k < V; ++k)
        along += (m0[k] * to_float(v[n].at[k]) + m1[k] * to_float(v0[n].at[k])) * to_float(d[n].at[k]);
    });
    along = warp_sum(along) * inverse / static_cast<float>(r.width);
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) fetch(n, c);
      weights(c);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const float x = to_float(v[n].at[k]), x0 = to_float(v0[n].at[k]);
        const float normed = (m0[k] * x + m1[k] * x0) * inverse;
        const float total = to_float(g[n].at[k]) + r.scale * inverse * (to_float(d[n].at[k]) - normed * along);
        if constexpr (N > 0) {
          held[n][k] += total * x;
          held0[n][k] += total * x0;
        } else {
          sums[spread<V>(c + k)] += total * x;
          sums[padded + spread<V>(c + k)] += total * x0;
        }
        m0[k] *= total;
        m1[k] *= total;
      }
      a.dx.store(row + c, m0);
      a.dx0.store(row + c, m1);
    });
  }
  if constexpr (N > 0) {
    each_piece<V, N>(r.width, [&](int n, int c) {
#pragma unroll
      for (int k = 0; k < V; ++k) {
        sums[spread<V>(c + k)] = held[n][k];
        sums[padded + spread<V>(c + k)] = held0[n][k];
      }
    });
  }
  leave_spread<V>(accumulators, warps, r.width, padded, partials);
}

}  // namespace

void forward(const MixNorm& op, const Forward<MixNorm>& f) {
  Scratch scratch(f.queue);
  const NormRow r{f.in.x.rows(), f.in.x.cols(), static_cast<float>(op.scale), static_cast<float>(op.eps)};
  with_rows(f.in.x, vectors(f, r.width), r.width, [&]<class T, int V, int N>() {
    mix_forward<T, V, N><<<blocks_for(scratch.context(), r.rows, kWarps), kThreads, 0, scratch.stream()>>>(
        r, source<T>(f.in.x), source<T>(f.in.x0), source<float>(f.in.mix), sink<T>(f.out.mixed), sink<T>(f.out.normed),
        sink<float>(f.saved.rstd));
  });
  check_launch("mix_norm");
}

void backward(const MixNorm& op, const Backward<MixNorm>& b) {
  Scratch scratch(b.queue);
  if (suits_fused_mix(scratch.context(), b)) return fused_mix_backward(scratch, op, b);
  const NormRow r{b.in.x.rows(), b.in.x.cols(), static_cast<float>(op.scale), static_cast<float>(op.eps)};
  with_rows(b.in.x, vectors(b, r.width), r.width, [&]<class T, int V, int N>() {
    const int64_t padded = spread_width(r.width, V);
    const int warps = column_warps(2 * padded), blocks = column_blocks(scratch.context(), r.rows, warps);
    const Partials partials{scratch.take<float>(blocks * 2 * r.width), blocks, 2 * r.width};
    const MixGradients<T> args{source<T>(b.in.x),        source<T>(b.in.x0),      source<T>(b.dout.mixed),
                               source<T>(b.dout.normed), source<float>(b.in.mix), source<float>(b.saved.rstd),
                               sink<T>(b.din.x),         sink<T>(b.din.x0)};
    mix_backward<T, V, N><<<blocks, warps * 32, static_cast<size_t>(warps * 2 * padded) * sizeof(float), scratch.stream()>>>(
        r, args, padded, partials);
    check_launch("mix_norm'");
    add_columns(scratch, partials, {{b.din.mix, 2 * r.width}});
  });
}

}  // namespace fairway::cuda
