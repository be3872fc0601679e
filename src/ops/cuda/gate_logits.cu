#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

constexpr int kLanes = 16, kHeads = 8;  // the published gate reads twelve columns for eight heads
constexpr int kGroups = kThreads / kLanes;

struct GateShape {
  int64_t rows, heads, width, gated;
};

template <class T>
__global__ void gate_forward(GateShape n, Source<T> a, Source<float> gate, float* logit) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n.rows * n.heads; i += int64_t{gridDim.x} * blockDim.x) {
    float total = 0;
    for (int64_t w = 0; w < n.gated; ++w) total += gate[i % n.heads * n.gated + w] * a[i / n.heads * n.width + w];
    logit[i] = total;
  }
}

// A group of lanes takes a row; a block has kHeads heads and kLanes columns, whose dgate a lane sums in registers. The first
// heads' block makes da of these columns, and the first block of all clears those that no gate reads.
template <class T>
__global__ void gate_backward(GateShape n, Source<T> a, Source<float> gate, Source<float> g, Sink<T> da, Partials partials) {
  __shared__ float accumulators[kGroups][kHeads][kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, group = static_cast<int>(threadIdx.x) / kLanes;
  const int64_t first = int64_t{blockIdx.y} * kHeads, c = int64_t{blockIdx.z} * kLanes + lane;
  const bool reads = c < n.gated;
  float of_head[kHeads], sums[kHeads] = {};
#pragma unroll
  for (int h = 0; h < kHeads; ++h) of_head[h] = reads && first + h < n.heads ? gate[(first + h) * n.gated + c] : 0.0f;
#pragma unroll 4
  for (int64_t m = int64_t{blockIdx.x} * kGroups + group; m < n.rows; m += int64_t{gridDim.x} * kGroups) {
    const float x = reads ? a[m * n.width + c] : 0.0f;
    float total = 0;
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const float slope = first + h < n.heads ? g[m * n.heads + first + h] : 0.0f;
      total += slope * of_head[h];
      sums[h] += slope * x;
    }
    if (first > 0) continue;
    for (int64_t h = kHeads; h < n.heads && reads; ++h) total += g[m * n.heads + h] * gate[h * n.gated + c];
    if (reads) da.put(m * n.width + c, total);
    for (int64_t rest = n.gated + lane; rest < n.width && blockIdx.z == 0 && !da.add; rest += kLanes)
      da.put(m * n.width + rest, 0);
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) accumulators[group][h][lane] = sums[h];
  __syncthreads();
  const int64_t head = first + group;
  if (group >= kHeads || head >= n.heads || !reads) return;
  float total = 0;
  for (int other = 0; other < kGroups; ++other) total += accumulators[other][group][lane];
  partials.data[blockIdx.x * partials.columns + head * n.gated + c] = total;
}

GateShape shape_of(const GateLogits::In& in) { return {in.a.rows(), in.gate.dim(0), in.a.cols(), in.gate.cols()}; }

}  // namespace

void forward(const GateLogits&, const Forward<GateLogits>& f) {
  Scratch scratch(f.queue);
  with_type(f.in.a, false, [&]<class T, int V>() {
    gate_forward<T><<<blocks_for(scratch.context(), f.out.logit.numel()), kThreads, 0, scratch.stream()>>>(
        shape_of(f.in), source<T>(f.in.a), source<float>(f.in.gate), pointer<float>(f.out.logit));
  });
  check_launch("gate_logits");
}

void backward(const GateLogits&, const Backward<GateLogits>& b) {
  Scratch scratch(b.queue);
  const GateShape n = shape_of(b.in);
  const int blocks = column_blocks(scratch.context(), n.rows, kGroups);
  const Partials partials{scratch.take<float>(blocks * n.heads * n.gated), blocks, n.heads * n.gated};
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>((n.heads + kHeads - 1) / kHeads),
                  static_cast<unsigned>((n.gated + kLanes - 1) / kLanes));
  with_type(b.in.a, false, [&]<class T, int V>() {
    gate_backward<T><<<grid, kThreads, 0, scratch.stream()>>>(n, source<T>(b.in.a), source<float>(b.in.gate),
                                                              source<float>(b.dout.logit), sink<T>(b.din.a), partials);
  });
  check_launch("gate_logits'");
  add_columns(scratch, partials, {{b.din.gate, partials.columns}});
}

}  // namespace fairway::cuda
