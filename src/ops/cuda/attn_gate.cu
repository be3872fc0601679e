// z_h = s_h·y_h, s_h = σ(½·gate_h·a[0:W]): a warp takes a row and its heads one after another.
#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

constexpr auto kGateScale = static_cast<float>(AttnGate::kScale);

struct Gate {
  int64_t rows, heads, size, width, gated;  // size of a head, width of a, W
};

template <class T>
__global__ void gate_forward(Gate n, Source<T> a, Source<T> y, Source<float> gate, Sink<T> z, Sink<float> open) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); i < n.rows * n.heads;
       i += int64_t{gridDim.x} * kWarps) {
    const int64_t row = i / n.heads * n.width, h = i % n.heads;
    float logit = 0;
    for (int64_t c = lane_id(); c < n.gated; c += 32) logit += gate[h * n.gated + c] * a[row + c];
    const float s = sigmoid(kGateScale * warp_sum(logit));
    if (lane_id() == 0) open.put(i, s);
    for (int64_t e = lane_id(); e < n.size; e += 32) z.put(i * n.size + e, s * y[i * n.size + e]);
  }
}

// t_h = ½·s(1−s)·(g·y) of each head is kept in shared memory for da = Σ_h t_h·gate_h; dgate_h += t_h·a.
template <class T>
__global__ void gate_backward(Gate n, Source<T> a, Source<T> y, Source<float> gate, Source<float> open, Source<T> g, Sink<T> da,
                              Sink<T> dy, Partials partials) {
  extern __shared__ float accumulators[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  float* sums = accumulators + warp_id() * partials.columns;
  float* logits = accumulators + warps * partials.columns + warp_id() * n.heads;
  for (int64_t c = lane_id(); c < partials.columns; c += 32) sums[c] = 0;
  __syncwarp();
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * warps + warp_id(); m < n.rows; m += int64_t{gridDim.x} * warps) {
    for (int64_t h = 0; h < n.heads; ++h) {
      const int64_t head = (m * n.heads + h) * n.size;
      const float s = open[m * n.heads + h];
      float along = 0;
      for (int64_t e = lane_id(); e < n.size; e += 32) {
        const float grad = g[head + e];
        along += grad * y[head + e];
        dy.put(head + e, s * grad);
      }
      const float t = kGateScale * s * (1 - s) * warp_sum(along);
      if (lane_id() == 0) logits[h] = t;
      for (int64_t c = lane_id(); c < n.gated; c += 32) sums[h * n.gated + c] += t * a[m * n.width + c];
    }
    __syncwarp();
    for (int64_t c = lane_id(); c < n.width; c += 32) {
      float total = 0;
      for (int64_t h = 0; c < n.gated && h < n.heads; ++h) total += logits[h] * gate[h * n.gated + c];
      da.put(m * n.width + c, total);
    }
    __syncwarp();
  }
  leave_partials(accumulators, warps, partials);
}

Gate sizes_of(const AttnGate& op, const AttnGate::In& in) {
  return {in.y.rows(), op.heads, in.y.cols() / op.heads, in.a.cols(), in.gate.cols()};
}

}  // namespace

void forward(const AttnGate& op, const Forward<AttnGate>& f) {
  Scratch scratch(f.queue);
  const Gate n = sizes_of(op, f.in);
  with_type(f.in.y, false, [&]<class T, int V>() {
    gate_forward<T><<<blocks_for(scratch.context(), n.rows * n.heads, kWarps), kThreads, 0, scratch.stream()>>>(
        n, source<T>(f.in.a), source<T>(f.in.y), source<float>(f.in.gate), sink<T>(f.out.z), sink<float>(f.saved.open));
  });
  check_launch("attn_gate");
}

void backward(const AttnGate& op, const Backward<AttnGate>& b) {
  Scratch scratch(b.queue);
  const Gate n = sizes_of(op, b.in);
  const int64_t columns = n.heads * n.gated;
  const int warps = column_warps(columns + n.heads), blocks = column_blocks(scratch.context(), n.rows, warps);
  const Partials partials{scratch.take<float>(blocks * columns), blocks, columns};
  with_type(b.in.y, false, [&]<class T, int V>() {
    gate_backward<T>
        <<<blocks, warps * 32, static_cast<size_t>(warps * (columns + n.heads)) * sizeof(float), scratch.stream()>>>(
            n, source<T>(b.in.a), source<T>(b.in.y), source<float>(b.in.gate), source<float>(b.saved.open), source<T>(b.dout.z),
            sink<T>(b.din.a), sink<T>(b.din.y), partials);
  });
  check_launch("attn_gate'");
  add_columns(scratch, partials, {{b.din.gate, columns}});
}

}  // namespace fairway::cuda
