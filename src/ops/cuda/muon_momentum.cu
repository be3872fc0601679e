#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

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

}  // namespace

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

}  // namespace fairway::cuda
