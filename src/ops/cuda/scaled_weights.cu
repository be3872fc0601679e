#include "ops/cuda/elements.cuh"
#include "ops/cuda/scaled_weights.h"

namespace fairway::cuda {
namespace {

template <class T>
__global__ void scale_rows_kernel(int64_t count, int64_t width, int64_t scales, const T* w, const float* scale, T* out) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    assign(out[i], scale[scales == 1 ? 0 : i / width] * to_float(w[i]));
}

// One block per row; with one scale for all, `totals` keeps the sum of each row.
template <class T>
__global__ void weight_gradients(int64_t width, int64_t scales, const float* gram, const T* w, const float* scale,
                                 Sink<float> dw, Sink<float> dscale, float* totals) {
  __shared__ float sums[kWarps];
  const int64_t row = blockIdx.x;
  const float factor = scale[scales == 1 ? 0 : row];
  float total = 0;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    const float g = gram[row * width + c];
    total += g * to_float(w[row * width + c]);
    dw.put(row * width + c, factor * g);
  }
  total = warp_sum(total);
  if (lane_id() == 0) sums[warp_id()] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kWarps; ++i) total += sums[i];
  if (scales == 1)
    totals[row] = total;
  else
    dscale.put(row, total);
}

__global__ void sum_rows(int64_t rows, const float* totals, Sink<float> out) {  // one warp
  double total = 0;
  for (int64_t i = lane_id(); i < rows; i += 32) total += static_cast<double>(totals[i]);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (lane_id() == 0) out.put(0, static_cast<float>(total));
}

}  // namespace

void scale_rows(Scratch& scratch, const Tensor& w, const Tensor& scale, const Tensor& out) {
  with_type(w, false, [&]<class T, int V>() {
    scale_rows_kernel<T><<<blocks_for(scratch.context(), w.numel()), kThreads, 0, scratch.stream()>>>(
        w.numel(), w.cols(), scale.numel(), pointer<T>(w), pointer<float>(scale), pointer<T>(out));
  });
  check_launch("scale_rows");
}

void scaled_weight_gradients(Scratch& scratch, const Tensor& gram, const Tensor& w, const Tensor& scale, const Tensor& dw,
                             const Tensor& dscale) {
  if (!dw && !dscale) return;
  const int64_t rows = w.rows(), scales = scale.numel();
  float* totals = scratch.take<float>(rows);
  with_type(w, false, [&]<class T, int V>() {
    weight_gradients<T><<<static_cast<unsigned>(rows), kThreads, 0, scratch.stream()>>>(
        w.cols(), scales, pointer<float>(gram), pointer<T>(w), pointer<float>(scale), sink<float>(dw), sink<float>(dscale),
        totals);
  });
  check_launch("weight_gradients");
  if (scales == 1 && dscale) sum_rows<<<1, 32, 0, scratch.stream()>>>(rows, totals, sink<float>(dscale));
}

Tensor scaled_weight(Scratch& scratch, const Tensor& weight, const Tensor& scale) {
  const Tensor out = scratch_tensor(scratch, weight.spec.shape, weight.spec.dtype);
  scale_rows(scratch, weight, scale, out);
  return out;
}

void project_into(Scratch& scratch, const Tensor& x, const Tensor& h, const Tensor& scaled, const Tensor& y) {
  scratch.context().gemms().run({.layout = ProductLayout::nt,
                                 .m = h.rows(),
                                 .n = scaled.rows(),
                                 .k = h.cols(),
                                 .in = h.spec.dtype,
                                 .out = y.spec.dtype,
                                 .a = h.data,
                                 .b = scaled.data,
                                 .c = x.data,
                                 .d = y.data,
                                 .beta = x ? 1.0f : 0.0f},
                                scratch.stream());
}

void project_gradients(Scratch& scratch, const Tensor& g, const Tensor& h, const Tensor& weight, const Tensor& scale,
                       const Tensor& dweight, const Tensor& dscale) {
  if (!dweight && !dscale) return;
  const Tensor gram = scratch_tensor(scratch, weight.spec.shape, DType::f32);
  multiply(scratch, ProductLayout::tn, g, h, gram);
  scaled_weight_gradients(scratch, gram, weight, scale, dweight, dscale);
}

}  // namespace fairway::cuda
