#include "ops/cuda/elements.cuh"
#include "ops/cuda/scaled_weights.h"

namespace fairway::cuda {
namespace {

// One block per row.
template <class T, int V>
__global__ void scale_rows_kernel(int64_t width, int64_t scales, Source<T> w, const float* scale, Sink<T> out) {
  const int64_t row = blockIdx.x;
  const float factor = scale[scales == 1 ? 0 : row];
  for (int64_t c = threadIdx.x * V; c < width; c += blockDim.x * V) {
    float x[V];
    w.load(row * width + c, x);
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] *= factor;
    out.store(row * width + c, x);
  }
}

// One block per row; with one scale for all, `totals` keeps the sum of each row.
template <class T, int V>
__global__ void weight_gradients(int64_t width, int64_t scales, Source<float> gram, Source<T> w, const float* scale,
                                 Sink<float> dw, Sink<float> dscale, float* totals) {
  __shared__ float sums[kWarps];
  const int64_t row = blockIdx.x;
  const float factor = scale[scales == 1 ? 0 : row];
  float total = 0;
  for (int64_t c = threadIdx.x * V; c < width; c += blockDim.x * V) {
    float g[V], of_weight[V];
    gram.load(row * width + c, g);
    w.load(row * width + c, of_weight);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      total += g[k] * of_weight[k];
      g[k] *= factor;
    }
    dw.store(row * width + c, g);
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

// Runs body.operator()<T, V>(); V neighbours at a time where rows and addresses allow it.
template <class Body>
void with_weight(const Tensor& w, std::initializer_list<Tensor> others, Body&& body) {
  constexpr int kTogether = 4;
  bool together = w.cols() % kTogether == 0;
  for (const Tensor& t : others) together &= !t || reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
  with_type(w, false, [&]<class T, int>() {
    together&& reinterpret_cast<uintptr_t>(w.data) % 16 == 0 ? body.template operator()<T, kTogether>()
                                                             : body.template operator()<T, 1>();
  });
}

}  // namespace

void scale_rows(Scratch& scratch, const Tensor& w, const Tensor& scale, const Tensor& out) {
  with_weight(w, {out}, [&]<class T, int V>() {
    scale_rows_kernel<T, V><<<static_cast<unsigned>(w.rows()), kThreads, 0, scratch.stream()>>>(
        w.cols(), scale.numel(), source<T>(w), pointer<float>(scale), sink<T>(out));
  });
  check_launch("scale_rows");
}

void scaled_weight_gradients(Scratch& scratch, const Tensor& gram, const Tensor& w, const Tensor& scale, const Tensor& dw,
                             const Tensor& dscale) {
  if (!dw && !dscale) return;
  const int64_t rows = w.rows(), scales = scale.numel();
  float* totals = scratch.take<float>(rows);
  with_weight(w, {gram, dw}, [&]<class T, int V>() {
    weight_gradients<T, V><<<static_cast<unsigned>(rows), kThreads, 0, scratch.stream()>>>(
        w.cols(), scales, source<float>(gram), source<T>(w), pointer<float>(scale), sink<float>(dw), sink<float>(dscale),
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
