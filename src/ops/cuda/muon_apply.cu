#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

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

}  // namespace

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

}  // namespace fairway::cuda
