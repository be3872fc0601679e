// Weights on the quantizer's grid: s = max(reach/levels, floor), clamp(round(w/s), ±levels)·s with the row's absmax or so many
// deviations for its reach; a warp per row. In double: a quotient next to a half must fall on the same side as in ref.
#include <cuda_fp16.h>

#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/scaled_weights.h"

namespace fairway::cuda {
namespace {

__device__ double sum_over_warp(double value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

__device__ double unbiased_deviation(Source<float> weight, int64_t begin, int64_t width) {
  if (width < 2) return 0;
  double sum = 0, squares = 0;
  for (int64_t c = lane_id(); c < width; c += 32) sum += weight[begin + c];
  const double mean = sum_over_warp(sum) / static_cast<double>(width);
  for (int64_t c = lane_id(); c < width; c += 32) squares += (weight[begin + c] - mean) * (weight[begin + c] - mean);
  return sqrt(sum_over_warp(squares) / static_cast<double>(width - 1));
}

__device__ double grid_step(const FakeQuant& op, Source<float> weight, int64_t begin, int64_t width, double most) {
  double reach = most;
  if (op.deviations > 0) {
    const double clip = op.deviations * unbiased_deviation(weight, begin, width);
    if (!(most > FakeQuant::kDegenerate * clip)) reach = clip;
  }
  const double step = fmax(reach / op.levels, op.scale_floor);
  return op.half_step ? static_cast<double>(__half2float(__float2half_rn(static_cast<float>(step)))) : step;
}

template <class T>
__global__ void quantize_rows(FakeQuant op, int64_t rows, int64_t width, Source<float> weight, Sink<T> out) {
  const double levels = op.levels;
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < rows; m += int64_t{gridDim.x} * kWarps) {
    float most = 0;
    for (int64_t c = lane_id(); c < width; c += 32) most = fmaxf(most, fabsf(weight[m * width + c]));
    for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    const double size = grid_step(op, weight, m * width, width, most);
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
        op, rows, width, source<float>(f.in.weight), sink<T>(f.out.quantized));
  });
  check_launch("fake_quant");
}

void backward(const FakeQuant&, const Backward<FakeQuant>& b) {
  Scratch scratch(b.queue);
  pass_through(scratch, b.dout.quantized, b.din.weight);
}

}  // namespace fairway::cuda
