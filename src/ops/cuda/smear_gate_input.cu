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

// The same for bf16 rows of J·256 columns: a warp a row, whose lanes ask for all they need before they use it.
template <int J, int First = J>
struct InputRow {
  Pack<bf16, 8> at[First];  // of the first First·256 columns
  __device__ InputRow(Source<bf16> rows, int64_t m, bool wanted) {
#pragma unroll
    for (int j = 0; j < First; ++j)
      at[j] = Source<bf16>{wanted ? rows.data : nullptr}.pack<8>(m * (J * 256) + 256 * j + lane_id() * 8);
  }
};

// w·x[0:W] of a lane's first eight columns of x.
__device__ inline float share_of_logit(const float (&weight)[8], const Pack<bf16, 8>& x) {
  float logit = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) logit += weight[k] * to_float(x.at[k]);
  return logit;
}
__device__ inline void weights_of_lane(const Opening& o, float (&weight)[8]) {
#pragma unroll
  for (int k = 0; k < 8; ++k) weight[k] = lane_id() * 8 + k < o.gated ? o.weight[lane_id() * 8 + k] : 0.0f;
}

template <int J>
__global__ void __launch_bounds__(kThreads) smear_input_rows_forward(Opening o, Source<bf16> e, Sink<bf16> y) {
  float weight[8];
  weights_of_lane(o, weight);
  const float lambda = o.lambda[0];
  for (int64_t m = warp_index(); m < o.r.rows; m += int64_t{gridDim.x} * kWarps) {
    const bool smears = o.smears(m);
    const InputRow<J> own(e, m, true), before(e, m - 1, smears);
    const float factor = smears ? lambda * sigmoid(warp_sum(share_of_logit(weight, own.at[0]))) : 0.0f;
#pragma unroll
    for (int j = 0; j < J; ++j) {
      float x[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) x[k] = to_float(own.at[j].at[k]) + factor * to_float(before.at[j].at[k]);
      y.store(m * (J * 256) + 256 * j + lane_id() * 8, x);
    }
  }
}

template <int J>
__global__ void __launch_bounds__(kThreads)
    smear_input_rows_backward(Opening o, Source<bf16> e, Source<bf16> g, Sink<bf16> de, Partials partials) {
  extern __shared__ float accumulators[];
  float weight[8], to_weight[8] = {}, to_lambda = 0;
  weights_of_lane(o, weight);
  const float lambda = o.lambda[0];
  for (int64_t m = warp_index(); m < o.r.rows; m += int64_t{gridDim.x} * kWarps) {
    const bool smears = o.smears(m), hands_on = o.smears(m + 1);
    const InputRow<J> grad(g, m, true), next(g, m + 1, hands_on), before(e, m - 1, smears);
    const InputRow<J, 1> own(e, m, true), after(e, m + 1, hands_on);
    float along = 0;
#pragma unroll
    for (int j = 0; j < J; ++j)
#pragma unroll
      for (int k = 0; k < 8; ++k) along += to_float(grad.at[j].at[k]) * to_float(before.at[j].at[k]);
    along = warp_sum(along);
    const float s = sigmoid(warp_sum(share_of_logit(weight, own.at[0])));
    const float handed = hands_on ? lambda * sigmoid(warp_sum(share_of_logit(weight, after.at[0]))) : 0.0f;
    const float logit_grad = lambda * s * (1 - s) * along;  // along is 0 where nothing is smeared
    to_lambda += s * along;
#pragma unroll
    for (int j = 0; j < J; ++j) {
      float d[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        d[k] = to_float(grad.at[j].at[k]) + handed * to_float(next.at[j].at[k]);
        if (j > 0) continue;
        d[k] += logit_grad * weight[k];
        to_weight[k] += logit_grad * to_float(own.at[0].at[k]);
      }
      de.store(m * (J * 256) + 256 * j + lane_id() * 8, d);
    }
  }
  float* sums = accumulators + warp_id() * partials.columns;
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (lane_id() * 8 + k < o.gated) sums[lane_id() * 8 + k] = to_weight[k];
  if (lane_id() == 0) sums[o.gated] = to_lambda;
  leave_partials(accumulators, kWarps, partials);
}

bool by_rows(const SmearGateInput::In& in, bool vectorized) {
  return vectorized && in.e.spec.dtype == DType::bf16 && in.e.cols() == 512 && in.weight.numel() <= 256;
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
  if (by_rows(f.in, vectors(f, o.r.width))) {
    smear_input_rows_forward<2><<<blocks_for(scratch.context(), o.r.rows, kWarps), kThreads, 0, scratch.stream()>>>(
        o, source<bf16>(f.in.e), sink<bf16>(f.out.y));
    return check_launch("smear_gate_input by rows");
  }
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
  if (b.dout.y && by_rows(b.in, vectors(b, o.r.width))) {
    const int blocks = row_blocks(scratch.context(), o.r.rows);
    const Partials partials{scratch.take<float>(blocks * columns), blocks, columns};
    smear_input_rows_backward<2><<<blocks, kThreads, static_cast<size_t>(kWarps * columns) * sizeof(float), scratch.stream()>>>(
        o, source<bf16>(b.in.e), source<bf16>(b.dout.y), sink<bf16>(b.din.e), partials);
    check_launch("smear_gate_input' by rows");
    return add_columns(scratch, partials, {{b.din.weight, o.gated}, {b.din.lambda, 1}});
  }
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
