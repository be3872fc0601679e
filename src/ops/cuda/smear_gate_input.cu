// A gate opened by the token itself (spec A.2); one warp per row.
#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

struct Opening {
  struct {
    int64_t rows, width, length;
  } r;
  int32_t bos;
  int64_t gated;
  const int32_t* tokens;
  Source<float> weight, lambda;
  __device__ bool smears(int64_t m) const { return m < r.rows && m % r.length != 0 && tokens[m] != bos; }
};

// σ(w·e_m[0:W]), the same in every lane.
template <class T>
__device__ float opening(const Opening& o, Source<T> e, int64_t m) {
  float logit = 0;
  for (int64_t c = lane_id(); c < o.gated; c += 32) logit += o.weight[c] * e[m * o.r.width + c];
  return sigmoid(warp_sum(logit));
}

template <class T>
__global__ void smear_input_forward(Opening o, Source<T> e, Sink<T> y) {
  const int64_t width = o.r.width;
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < o.r.rows; m += int64_t{gridDim.x} * kWarps) {
    const bool smears = o.smears(m);
    const float factor = smears ? o.lambda[0] * opening(o, e, m) : 0.0f;
    for (int64_t c = lane_id(); c < width; c += 32)
      y.put(m * width + c, e[m * width + c] + (smears ? factor * e[(m - 1) * width + c] : 0.0f));
  }
}

template <class T>
__global__ void smear_input_backward(Opening o, Source<T> e, Source<T> g, Sink<T> de, Partials partials) {
  extern __shared__ float accumulators[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int64_t width = o.r.width;
  float* sums = accumulators + warp_id() * partials.columns;
  for (int64_t c = lane_id(); c < partials.columns; c += 32) sums[c] = 0;
  __syncwarp();
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * warps + warp_id(); m < o.r.rows; m += int64_t{gridDim.x} * warps) {
    float logit_grad = 0;
    if (o.smears(m)) {
      float along = 0;
      for (int64_t c = lane_id(); c < width; c += 32) along += g[m * width + c] * e[(m - 1) * width + c];
      along = warp_sum(along);
      const float s = opening(o, e, m);
      if (lane_id() == 0) sums[o.gated] += s * along;
      logit_grad = o.lambda[0] * s * (1 - s) * along;
    }
    const bool next = o.smears(m + 1);
    const float handed = next ? o.lambda[0] * opening(o, e, m + 1) : 0.0f;
    for (int64_t c = lane_id(); c < width; c += 32) {
      const int64_t at = m * width + c;
      if (c < o.gated) sums[c] += logit_grad * e[at];
      de.put(at, g[at] + (c < o.gated ? logit_grad * o.weight[c] : 0.0f) + (next ? handed * g[at + width] : 0.0f));
    }
  }
  leave_partials(accumulators, warps, partials);
}

Opening opening_of(const SmearGateInput& op, const SmearGateInput::In& in) {
  return {{in.e.rows(), in.e.cols(), op.row_length},
          op.bos,
          in.weight.numel(),
          pointer<int32_t>(in.tokens),
          source<float>(in.weight),
          source<float>(in.lambda)};
}

}  // namespace

void forward(const SmearGateInput& op, const Forward<SmearGateInput>& f) {
  Scratch scratch(f.queue);
  const Opening o = opening_of(op, f.in);
  with_type(f.in.e, false, [&]<class T, int V>() {
    smear_input_forward<T><<<blocks_for(scratch.context(), o.r.rows, kWarps), kThreads, 0, scratch.stream()>>>(
        o, source<T>(f.in.e), sink<T>(f.out.y));
  });
  check_launch("smear_gate_input");
}

void backward(const SmearGateInput& op, const Backward<SmearGateInput>& b) {
  Scratch scratch(b.queue);
  const Opening o = opening_of(op, b.in);
  const int64_t columns = o.gated + 1;
  const int warps = column_warps(columns), blocks = column_blocks(scratch.context(), o.r.rows, warps);
  const Partials partials{scratch.take<float>(blocks * columns), blocks, columns};
  with_type(b.in.e, false, [&]<class T, int V>() {
    smear_input_backward<T><<<blocks, warps * 32, static_cast<size_t>(warps * columns) * sizeof(float), scratch.stream()>>>(
        o, source<T>(b.in.e), source<T>(b.dout.y), sink<T>(b.din.e), partials);
  });
  check_launch("smear_gate_input'");
  add_columns(scratch, partials, {{b.din.weight, o.gated}, {b.din.lambda, 1}});
}

}  // namespace fairway::cuda
