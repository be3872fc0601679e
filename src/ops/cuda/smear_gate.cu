// A gate per channel (spec §4.3, §6.9); one warp per row.
#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

struct Rows {
  int64_t rows, width, length;
};

template <class T, int V>
__global__ void smear_forward(Rows r, Source<T> u, Source<float> gate, Sink<T> y) {
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < r.rows; m += int64_t{gridDim.x} * kWarps) {
    const bool first = m % r.length == 0;
    for (int64_t c = lane_id() * V; c < r.width; c += 32 * V) {
      float x[V], before[V] = {}, g[V];
      u.load(m * r.width + c, x);
      if (!first) u.load((m - 1) * r.width + c, before);
      gate.load(c, g);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const float open = sigmoid(g[k]);
        x[k] = (1 - open) * x[k] + open * before[k];
      }
      y.store(m * r.width + c, x);
    }
  }
}

template <class T, int V>
__global__ void smear_backward(Rows r, Source<T> u, Source<float> gate, Source<T> g, Sink<T> du, int64_t padded,
                               Partials partials) {
  extern __shared__ float accumulators[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  float* sums = accumulators + warp_id() * padded;
  for (int64_t c = lane_id(); c < padded; c += 32) sums[c] = 0;
  __syncwarp();
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * warps + warp_id(); m < r.rows; m += int64_t{gridDim.x} * warps) {
    const bool first = m % r.length == 0, last = (m + 1) % r.length == 0;
    for (int64_t c = lane_id() * V; c < r.width; c += 32 * V) {
      float x[V], before[V] = {}, d[V], next[V] = {}, o[V];
      u.load(m * r.width + c, x);
      if (!first) u.load((m - 1) * r.width + c, before);
      g.load(m * r.width + c, d);
      if (!last) g.load((m + 1) * r.width + c, next);
      gate.load(c, o);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const float open = sigmoid(o[k]);
        sums[spread<V>(c + k)] += open * (1 - open) * d[k] * (before[k] - x[k]);
        d[k] = (1 - open) * d[k] + open * next[k];
      }
      du.store(m * r.width + c, d);
    }
  }
  leave_spread<V>(accumulators, warps, r.width, padded, partials);
}

// The same for bf16 rows of J·256 columns: a warp a row, column sums in registers, every read on its way before one is used.
template <int J>
__global__ void __launch_bounds__(kThreads, 2)
    smear_rows_backward(Rows r, Source<bf16> u, Source<float> gate, Source<bf16> g, Sink<bf16> du, Partials partials) {
  constexpr int kWidth = J * 256;
  __shared__ float accumulators[kWarps * kWidth];
  const auto rows = static_cast<unsigned>(r.rows), length = static_cast<unsigned>(r.length);
  const int begin = lane_id() * 8;
  float open[J][8], to_gate[J][8] = {};
#pragma unroll
  for (int j = 0; j < J; ++j) {
    gate.load(256 * j + begin, open[j]);
#pragma unroll
    for (int k = 0; k < 8; ++k) open[j][k] = sigmoid(open[j][k]);
  }
  for (unsigned m = blockIdx.x * kWarps + static_cast<unsigned>(warp_id()); m < rows; m += gridDim.x * kWarps) {
    const unsigned place = m % length;
    const int64_t at = int64_t{m} * kWidth + begin;
    const Source<bf16> before{place > 0 ? u.data : nullptr}, after{place + 1 < length ? g.data : nullptr};
    Pack<bf16, 8> x[J], last[J], grad[J], next[J];
#pragma unroll
    for (int j = 0; j < J; ++j) {
      x[j] = u.pack<8>(at + 256 * j);
      grad[j] = g.pack<8>(at + 256 * j);
      last[j] = before.pack<8>(at + 256 * j - kWidth);
      next[j] = after.pack<8>(at + 256 * j + kWidth);
    }
#pragma unroll
    for (int j = 0; j < J; ++j) {
      float d[8];
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        d[k] = to_float(grad[j].at[k]);
        to_gate[j][k] += d[k] * (to_float(last[j].at[k]) - to_float(x[j].at[k]));
        d[k] = (1 - open[j][k]) * d[k] + open[j][k] * to_float(next[j].at[k]);
      }
      du.store(at + 256 * j, d);
    }
  }
#pragma unroll
  for (int j = 0; j < J; ++j) {
#pragma unroll
    for (int k = 0; k < 8; ++k)
      accumulators[warp_id() * kWidth + 256 * j + begin + k] = to_gate[j][k] * open[j][k] * (1 - open[j][k]);
  }
  leave_partials(accumulators, kWarps, partials);
}

}  // namespace

void forward(const SmearGate& op, const Forward<SmearGate>& f) {
  Scratch scratch(f.queue);
  const Rows r{f.in.u.rows(), f.in.u.cols(), op.row_length};
  with_type(f.in.u, vectors(f, r.width), [&]<class T, int V>() {
    smear_forward<T, V><<<blocks_for(scratch.context(), r.rows, kWarps), kThreads, 0, scratch.stream()>>>(
        r, source<T>(f.in.u), source<float>(f.in.gate), sink<T>(f.out.y));
  });
  check_launch("smear_gate");
}

void backward(const SmearGate& op, const Backward<SmearGate>& b) {
  Scratch scratch(b.queue);
  const Rows r{b.in.u.rows(), b.in.u.cols(), op.row_length};
  if (r.width == 512 && b.in.u.spec.dtype == DType::bf16 && b.dout.y && r.rows < (int64_t{1} << 31) && vectors(b, r.width)) {
    const int blocks = row_blocks(scratch.context(), r.rows);
    const Partials partials{scratch.take<float>(blocks * r.width), blocks, r.width};
    smear_rows_backward<2><<<blocks, kThreads, 0, scratch.stream()>>>(r, source<bf16>(b.in.u), source<float>(b.in.gate),
                                                                      source<bf16>(b.dout.y), sink<bf16>(b.din.u), partials);
    check_launch("smear_gate' by rows");
    return add_columns(scratch, partials, {{b.din.gate, r.width}});
  }
  with_type(b.in.u, vectors(b, r.width), [&]<class T, int V>() {
    const int64_t padded = spread_width(r.width, V);
    const int warps = column_warps(padded), blocks = column_blocks(scratch.context(), r.rows, warps);
    const Partials partials{scratch.take<float>(blocks * r.width), blocks, r.width};
    smear_backward<T, V><<<blocks, warps * 32, static_cast<size_t>(warps * padded) * sizeof(float), scratch.stream()>>>(
        r, source<T>(b.in.u), source<float>(b.in.gate), source<T>(b.dout.y), sink<T>(b.din.u), padded, partials);
    check_launch("smear_gate'");
    add_columns(scratch, partials, {{b.din.gate, r.width}});
  });
}

}  // namespace fairway::cuda
