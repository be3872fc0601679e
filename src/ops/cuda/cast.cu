#include "ops/cuda/cast.h"

#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

template <class From, class To, int V>
__global__ void cast(int64_t count, Source<From> from, Sink<To> to) {
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    float x[V];
    from.load(i, x);
    to.store(i, x);
  }
}

__global__ void cap_values(int64_t count, float* values, float cap) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    values[i] = cap * tanhf(values[i] / cap);
}

template <class From, class To>
void run(Context& context, const void* from, void* to, int64_t count) {
  const Source<From> in{static_cast<const From*>(from)};
  const Sink<To> out{static_cast<To*>(to), false};
  if (count % 4 == 0) {
    cast<From, To, 4><<<blocks_for(context, count / 4), kThreads, 0, context.stream()>>>(count, in, out);
  } else {
    cast<From, To, 1><<<blocks_for(context, count), kThreads, 0, context.stream()>>>(count, in, out);
  }
  check_launch("cast");
}

}  // namespace

void cast_to_bf16(Context& context, const void* floats, void* halves, int64_t count) {
  run<float, bf16>(context, floats, halves, count);
}

void cast_to_float(Context& context, const void* halves, void* floats, int64_t count) {
  run<bf16, float>(context, halves, floats, count);
}

void softcap(Context& context, void* floats, int64_t count, float cap) {
  cap_values<<<blocks_for(context, count), kThreads, 0, context.stream()>>>(count, static_cast<float*>(floats), cap);
  check_launch("softcap");
}

}  // namespace fairway::cuda
