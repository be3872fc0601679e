#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

struct Rounded {  // a float that bf16 has
  float value;
};
__device__ inline float to_float(Rounded x) { return x.value; }
__device__ inline void assign(Rounded& to, float x) { to.value = __bfloat162float(__float2bfloat16_rn(x)); }

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

}  // namespace

void forward(const AccumulateScaled& op, const Forward<AccumulateScaled>& f) {
  Scratch scratch(f.queue);
  Tensor target = f.in.target;
  target.accumulate = !op.overwrite;
  const auto launch = [&]<class S, class T, int V>() {
    accumulate<S, T, V><<<blocks_for(scratch.context(), target.numel() / V), kThreads, 0, scratch.stream()>>>(
        target.numel(), op.factor, pointer<double>(f.in.coefficient), source<S>(f.in.source), sink<T>(target));
  };
  with_type(f.in.source, vectors(f, target.numel()), [&]<class S, int V>() {
    constexpr int kBoth = V == 1 ? 1 : 4;  // the float side is the wider one
    if (target.spec.dtype == DType::bf16)
      launch.template operator()<S, bf16, V>();
    else if (op.round)
      launch.template operator()<S, Rounded, kBoth>();
    else
      launch.template operator()<S, float, kBoth>();
  });
  check_launch("accumulate_scaled");
}

}  // namespace fairway::cuda
