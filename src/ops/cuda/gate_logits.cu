#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

constexpr unsigned kLanes = 16, kHeads = 8;  // the published gate reads twelve columns for eight heads
constexpr unsigned kGroups = kThreads / kLanes;
constexpr int kRowsAtOnce = 4;  // asked for before one is used

// Rows and heads are counted in 32 bits: dividing would be most of the work.
struct GateShape {
  unsigned rows, heads, width, gated;
};

template <class T>
__global__ void gate_forward(GateShape n, Source<T> a, Source<float> gate, float* logit) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n.rows * n.heads; i += gridDim.x * blockDim.x) {
    const unsigned row = i / n.heads, head = i - row * n.heads;
    float total = 0;
    for (unsigned w = 0; w < n.gated; ++w) total += gate[head * n.gated + w] * a[int64_t{row} * n.width + w];
    logit[i] = total;
  }
}

// A group of lanes takes rows; a block has kHeads heads and kLanes columns, whose dgate a lane sums in registers. The first
// heads' block makes da of these columns.
template <class T>
__global__ void gate_backward(GateShape n, Source<T> a, Source<float> gate, Source<float> g, Sink<T> da, Partials partials) {
  __shared__ float accumulators[kGroups][kHeads][kLanes];
  const unsigned lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const unsigned first = blockIdx.y * kHeads, c = blockIdx.z * kLanes + lane, stride = gridDim.x * kGroups;
  const bool reads = c < n.gated, makes = reads && first == 0;
  float of_head[kHeads], sums[kHeads] = {};
#pragma unroll
  for (unsigned h = 0; h < kHeads; ++h) of_head[h] = reads && first + h < n.heads ? gate[(first + h) * n.gated + c] : 0.0f;
  for (unsigned begin = blockIdx.x * kGroups + group; begin < n.rows; begin += kRowsAtOnce * stride) {
    float x[kRowsAtOnce], had[kRowsAtOnce], slope[kRowsAtOnce][kHeads];
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const unsigned m = begin + r * stride;
      const bool there = m < n.rows;
      const int64_t at = int64_t{m} * n.width + c;
      x[r] = there && reads ? a[at] : 0.0f;
      had[r] = there && makes && da.add ? to_float(da.data[at]) : 0.0f;
#pragma unroll
      for (unsigned h = 0; h < kHeads; ++h)
        slope[r][h] = there && first + h < n.heads ? g[int64_t{m} * n.heads + first + h] : 0.0f;
    }
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const unsigned m = begin + r * stride;
      float total = had[r];
#pragma unroll
      for (unsigned h = 0; h < kHeads; ++h) {
        total += slope[r][h] * of_head[h];
        sums[h] += slope[r][h] * x[r];
      }
      if (m >= n.rows || !makes || da.data == nullptr) continue;
      for (unsigned h = kHeads; h < n.heads; ++h) total += g[int64_t{m} * n.heads + h] * gate[h * n.gated + c];
      assign(da.data[int64_t{m} * n.width + c], total);
    }
  }
#pragma unroll
  for (unsigned h = 0; h < kHeads; ++h) accumulators[group][h][lane] = sums[h];
  __syncthreads();
  const unsigned head = first + group;
  if (group >= kHeads || head >= n.heads || !reads) return;
  float total = 0;
  for (unsigned other = 0; other < kGroups; ++other) total += accumulators[other][group][lane];
  partials.data[blockIdx.x * partials.columns + head * n.gated + c] = total;
}

GateShape shape_of(const GateLogits::In& in) {
  const auto count = [](int64_t x) { return static_cast<unsigned>(x); };
  require(in.a.rows() * in.gate.dim(0) < (int64_t{1} << 31), GateLogits::name,
          "a micro-batch on the device has fewer than 2^31 heads");
  return {count(in.a.rows()), count(in.gate.dim(0)), count(in.a.cols()), count(in.gate.cols())};
}

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
  const auto parts = [](unsigned count, unsigned each) { return (count + each - 1) / each; };
  const int blocks = row_blocks(scratch.context(), parts(n.rows, kRowsAtOnce));
  const Partials partials{scratch.take<float>(int64_t{blocks} * n.heads * n.gated), blocks, int64_t{n.heads} * n.gated};
  if (b.din.a && !b.din.a.accumulate)  // columns that no gate reads
    check(cudaMemsetAsync(b.din.a.data, 0, b.din.a.spec.bytes(), scratch.stream()), "cudaMemsetAsync");
  with_type(b.in.a, false, [&]<class T, int V>() {
    gate_backward<T><<<dim3(static_cast<unsigned>(blocks), parts(n.heads, kHeads), parts(n.gated, kLanes)), kThreads, 0,
                       scratch.stream()>>>(n, source<T>(b.in.a), source<float>(b.in.gate), source<float>(b.dout.logit),
                                           sink<T>(b.din.a), partials);
  });
  check_launch("gate_logits'");
  add_columns(scratch, partials, {{b.din.gate, partials.columns}});
}

}  // namespace fairway::cuda
