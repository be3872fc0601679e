#include "ops/cuda/elements.cuh"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

template <class T, int V>
__global__ void pass_kernel(int64_t count, int64_t width, int64_t from_pitch, int64_t to_pitch, Source<T> from, Sink<T> to) {
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V; i < count; i += int64_t{gridDim.x} * blockDim.x * V) {
    // 64-bit division is slow, and no row of a few hundred million elements needs it.
    const int64_t row = count <= UINT32_MAX ? static_cast<uint32_t>(i) / static_cast<uint32_t>(width) : i / width;
    const int64_t c = i - row * width;
    float x[V];
    from.load(row * from_pitch + c, x);
    to.store(row * to_pitch + c, x);
  }
}

}  // namespace

void pass_through(Scratch& scratch, const Tensor& from, const Tensor& to) {
  if (!to || from.data == to.data) return;              // the memory plan lets a gradient pass by sharing its place
  const bool dense = from.pitch == 0 && to.pitch == 0;  // one long row, whatever its width
  const int64_t width = dense ? from.numel() : from.cols();
  const bool aligned =
      width % 8 == 0 && reinterpret_cast<uintptr_t>(from.data) % 16 == 0 && reinterpret_cast<uintptr_t>(to.data) % 16 == 0;
  with_type(from, aligned, [&]<class T, int V>() {
    pass_kernel<T, V><<<blocks_for(scratch.context(), from.numel() / V), kThreads, 0, scratch.stream()>>>(
        from.numel(), width, dense ? width : pitch_of(from), dense ? width : pitch_of(to), source<T>(from), sink<T>(to));
  });
  check_launch("pass_through");
}

}  // namespace fairway::cuda
