#include "ops/cuda/cuda.h"
#include "ops/cuda/row_pieces.cuh"

namespace fairway::cuda {
namespace {

template <class T, int V, int N>
__global__ void rms_forward(NormRow r, Source<T> x, Sink<T> y, Sink<float> rstd) {
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < r.rows; m += int64_t{gridDim.x} * kWarps) {
    const int64_t row = m * r.width;
    float v[kPieces<N>][V], squares = 0;
    if constexpr (N > 0) each_piece<V, N>(r.width, [&](int n, int c) { x.load(row + c, v[n]); });
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) x.load(row + c, v[n]);
      squares = add_squares(v[n], squares);
    });
    const float inverse = inverse_rms(warp_sum(squares), r);
    if (lane_id() == 0) rstd.put(m, inverse);
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) x.load(row + c, v[n]);
#pragma unroll
      for (int k = 0; k < V; ++k) v[n][k] *= r.scale * inverse;
      y.store(row + c, v[n]);
    });
  }
}

// dx = scale·r·(g − x·r·along), along = Σ g·x·r / D.
template <class T, int V, int N>
__global__ void rms_backward(NormRow r, Source<T> x, Source<float> rstd, Source<T> g, Sink<T> dx) {
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < r.rows; m += int64_t{gridDim.x} * kWarps) {
    const int64_t row = m * r.width;
    const float inverse = rstd[m];
    float v[kPieces<N>][V], d[kPieces<N>][V], along = 0;
    const auto fetch = [&](int n, int c) {
      x.load(row + c, v[n]);
      g.load(row + c, d[n]);
    };
    if constexpr (N > 0) each_piece<V, N>(r.width, fetch);
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) fetch(n, c);
#pragma unroll
      for (int k = 0; k < V; ++k) along += v[n][k] * d[n][k];
    });
    along = warp_sum(along) * inverse / static_cast<float>(r.width);
    each_piece<V, N>(r.width, [&](int n, int c) {
      if constexpr (N == 0) fetch(n, c);
#pragma unroll
      for (int k = 0; k < V; ++k) d[n][k] = r.scale * inverse * (d[n][k] - v[n][k] * inverse * along);
      dx.store(row + c, d[n]);
    });
  }
}

}  // namespace

void forward(const RmsNorm& op, const Forward<RmsNorm>& f) {
  Scratch scratch(f.queue);
  const NormRow r{f.in.x.rows(), f.in.x.cols(), static_cast<float>(op.scale), static_cast<float>(op.eps)};
  with_rows(f.in.x, vectors(f, r.width), r.width, [&]<class T, int V, int N>() {
    rms_forward<T, V, N><<<blocks_for(scratch.context(), r.rows, kWarps), kThreads, 0, scratch.stream()>>>(
        r, source<T>(f.in.x), sink<T>(f.out.y), sink<float>(f.saved.rstd));
  });
  check_launch("rms_norm");
}

void backward(const RmsNorm& op, const Backward<RmsNorm>& b) {
  Scratch scratch(b.queue);
  const NormRow r{b.in.x.rows(), b.in.x.cols(), static_cast<float>(op.scale), static_cast<float>(op.eps)};
  with_rows(b.in.x, vectors(b, r.width), r.width, [&]<class T, int V, int N>() {
    rms_backward<T, V, N><<<blocks_for(scratch.context(), r.rows, kWarps), kThreads, 0, scratch.stream()>>>(
        r, source<T>(b.in.x), source<float>(b.saved.rstd), source<T>(b.dout.y), sink<T>(b.din.x));
  });
  check_launch("rms_norm'");
}

}  // namespace fairway::cuda
