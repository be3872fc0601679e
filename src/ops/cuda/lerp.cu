#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

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
