#include "ops/cuda/combine.cuh"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {

void forward(const ValueMix&, const Forward<ValueMix>& f) {
  Scratch scratch(f.queue);
  const int64_t count = f.in.v.numel();
  with_type(f.in.v, vectors(f, count), [&]<class T, int V>() {
    launch_combine<T, V, 2, 1>(
        scratch, count,
        {{source<T>(f.in.v), source<T>(f.in.embed)}, {sink<T>(f.out.y)}, source<float>(f.in.scale), {{-1, 0}}, 1});
  });
}

void backward(const ValueMix&, const Backward<ValueMix>& b) {
  Scratch scratch(b.queue);
  const int64_t count = b.in.v.numel();
  with_type(b.in.v, vectors(b, count), [&]<class T, int V>() {
    launch_combine<T, V, 1, 2>(
        scratch, count,
        {{source<T>(b.dout.y)}, {sink<T>(b.din.v), sink<T>(b.din.embed)}, source<float>(b.in.scale), {{-1}, {0}}, 1});
    if (b.din.scale) {
      add_columns(scratch, dot<T, V>(scratch, count, source<T>(b.dout.y), source<T>(b.in.embed)), {{b.din.scale, 1}});
    }
  });
}

}  // namespace fairway::cuda
