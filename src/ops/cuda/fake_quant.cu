// Weights on the quantizer's grid: s = max(absmax/levels, floor), clamp(round(w/s), ±levels)·s; a warp per row. Divided in
// double: a quotient next to a half must fall on the same side as in ref.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/small.h"

namespace fairway::cuda {
namespace {

template <class T>
__global__ void quantize_rows(int64_t rows, int64_t width, double levels, double floor, Source<float> weight, Sink<T> out) {
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < rows; m += int64_t{gridDim.x} * kWarps) {
    float most = 0;
    for (int64_t c = lane_id(); c < width; c += 32) most = fmaxf(most, fabsf(weight[m * width + c]));
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    const double size = fmax(static_cast<double>(most) / levels, floor);
    for (int64_t c = lane_id(); c < width; c += 32) {
      const double steps = size > 0 ? rint(static_cast<double>(weight[m * width + c]) / size) : 0;
      out.put(m * width + c, static_cast<float>(fmin(fmax(steps, -levels), levels) * size));
    }
  }
}

}  // namespace

void forward(const FakeQuant& op, const Forward<FakeQuant>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.weight.rows(), width = f.in.weight.cols();
  with_type(f.out.quantized, false, [&]<class T, int V>() {
    quantize_rows<T><<<blocks_for(scratch.context(), rows, kWarps), kThreads, 0, scratch.stream()>>>(
        rows, width, op.levels, op.scale_floor, source<float>(f.in.weight), sink<T>(f.out.quantized));
  });
  check_launch("fake_quant");
}

void backward(const FakeQuant&, const Backward<FakeQuant>& b) {
  Scratch scratch(b.queue);
  pass_through(scratch, b.dout.quantized, b.din.weight);
}

}  // namespace fairway::cuda
