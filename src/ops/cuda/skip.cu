// y = x + weight⊙skip, or with γ = σ(gate): y = (1−γ)⊙weight⊙skip + γ⊙x. One warp per row, or per part of one; column sums as
// in columns.h.
#include "ops/cuda/columns.h"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {
namespace {

template <class T, int V>
__global__ void skip_forward(int64_t rows, int64_t width, Source<T> x, Source<T> skip, Source<float> weight, Source<float> gate,
                             Sink<T> y) {
  for (int64_t c = lane_id() * V; c < width; c += 32 * V) {
    float of_skip[V], of_x[V];  // factors of the lane's columns
    weight.load(c, of_skip);
    gate.load(c, of_x);
#pragma unroll
    for (int k = 0; k < V; ++k) {
      of_x[k] = gate ? sigmoid(of_x[k]) : 1.0f;
      if (gate) of_skip[k] *= 1 - of_x[k];
    }
    for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < rows; m += int64_t{gridDim.x} * kWarps) {
      float a[V], s[V];
      x.load(m * width + c, a);
      skip.load(m * width + c, s);
#pragma unroll
      for (int k = 0; k < V; ++k) a[k] = of_skip[k] * s[k] + of_x[k] * a[k];
      y.store(m * width + c, a);
    }
  }
}

template <class T>
struct SkipGradients {
  Source<T> x, skip, g;
  Source<float> weight, gate;
  Sink<T> dx, dskip;
};

template <class T, int V>
__global__ void skip_backward(int64_t rows, int64_t width, SkipGradients<T> a, int64_t padded, Partials partials) {
  extern __shared__ float accumulators[];
  const int warps = static_cast<int>(blockDim.x) / 32;
  float* sums = accumulators + warp_id() * 2 * padded;
  for (int64_t c = lane_id(); c < 2 * padded; c += 32) sums[c] = 0;
  __syncwarp();
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * warps + warp_id(); m < rows; m += int64_t{gridDim.x} * warps) {
    for (int64_t c = lane_id() * V; c < width; c += 32 * V) {
      float x[V], s[V], g[V], w[V], o[V];
      a.skip.load(m * width + c, s);
      a.g.load(m * width + c, g);
      a.weight.load(c, w);
      if (a.gate) {
        a.x.load(m * width + c, x);
        a.gate.load(c, o);
      }
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const float open = a.gate ? sigmoid(o[k]) : 0.0f, to_skip = 1 - open;
        sums[spread<V>(c + k)] += to_skip * g[k] * s[k];
        if (a.gate) sums[padded + spread<V>(c + k)] += g[k] * (x[k] - w[k] * s[k]) * open * (1 - open);
        s[k] = to_skip * w[k] * g[k];
        g[k] *= a.gate ? open : 1.0f;
      }
      a.dx.store(m * width + c, g);
      a.dskip.store(m * width + c, s);
    }
  }
  leave_spread<V>(accumulators, warps, width, padded, partials);
}

// The same for bf16 rows of J·256 columns: a warp a row. The next row is on its way while one is worked on, so its registers
// and those of the column sums leave none for the factors, which lie in shared memory. With P = Σ g·skip and Q = Σ g·x: dweight
// = (1−γ)·P, dgate = γ(1−γ)·(Q − weight·P).
template <int J, bool Gated>
struct SkipRow {
  Pack<bf16, 8> skip[J], grad[J], x[J];
  __device__ void load(const SkipGradients<bf16>& a, int64_t at) {
#pragma unroll
    for (int j = 0; j < J; ++j) {
      skip[j] = a.skip.template pack<8>(at + 256 * j);
      grad[j] = a.g.template pack<8>(at + 256 * j);
      if (Gated) x[j] = a.x.template pack<8>(at + 256 * j);
    }
  }
};
template <int J, bool Gated>
__global__ void __launch_bounds__(kThreads, 2) skip_rows_backward(unsigned rows, SkipGradients<bf16> a, Partials partials) {
  constexpr int kWidth = J * 256, kSets = Gated ? 2 : 1;
  __shared__ float accumulators[kWarps * kSets * kWidth];
  __shared__ alignas(16) float to_skip[kWidth], to_x[kWidth];
  for (int c = static_cast<int>(threadIdx.x); c < kWidth; c += kThreads) {
    to_x[c] = Gated ? sigmoid(a.gate[c]) : 1.0f;
    to_skip[c] = (Gated ? 1 - to_x[c] : 1.0f) * a.weight[c];
  }
  __syncthreads();
  const int first = lane_id() * 8;
  float by_skip[J][8] = {}, by_x[J][8] = {};
  SkipRow<J, Gated> next;
  unsigned m = blockIdx.x * kWarps + static_cast<unsigned>(warp_id());
  if (m < rows) next.load(a, int64_t{m} * kWidth + first);
  for (; m < rows; m += gridDim.x * kWarps) {
    const SkipRow<J, Gated> row = next;
    const int64_t at = int64_t{m} * kWidth + first;
    if (m + gridDim.x * kWarps < rows) next.load(a, at + int64_t{gridDim.x} * kWarps * kWidth);
#pragma unroll
    for (int j = 0; j < J; ++j) {
      float to[8], g[8];
      Source<float>{to_skip}.load(256 * j + first, to);
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        g[k] = to_float(row.grad[j].at[k]);
        by_skip[j][k] += g[k] * to_float(row.skip[j].at[k]);
        if (Gated) by_x[j][k] += g[k] * to_float(row.x[j].at[k]);
        to[k] *= g[k];
      }
      a.dskip.store(at + 256 * j, to);
      Source<float>{to_x}.load(256 * j + first, to);
#pragma unroll
      for (int k = 0; k < 8; ++k) to[k] *= g[k];
      a.dx.store(at + 256 * j, to);
    }
  }
  float* mine = accumulators + warp_id() * kSets * kWidth;
#pragma unroll
  for (int j = 0; j < J; ++j) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int c = 256 * j + first + k;
      const float open = Gated ? to_x[c] : 0.0f;
      mine[c] = (1 - open) * by_skip[j][k];
      if (Gated) mine[kWidth + c] = open * (1 - open) * (by_x[j][k] - a.weight[c] * by_skip[j][k]);
    }
  }
  leave_partials(accumulators, kWarps, partials);
}

template <int J, bool Gated>
void launch_rows(Scratch& scratch, const Backward<Skip>& b, const SkipGradients<bf16>& args) {
  constexpr int64_t kWidth = J * 256;
  const int64_t rows = b.in.x.rows();
  const int blocks = row_blocks(scratch.context(), rows);
  const Partials partials{scratch.take<float>(blocks * (Gated ? 2 : 1) * kWidth), blocks, (Gated ? 2 : 1) * kWidth};
  skip_rows_backward<J, Gated><<<blocks, kThreads, 0, scratch.stream()>>>(static_cast<unsigned>(rows), args, partials);
  check_launch("skip' by rows");
  Gated ? add_columns(scratch, partials, {{b.din.weight, kWidth}, {b.din.gate, kWidth}})
        : add_columns(scratch, partials, {{b.din.weight, kWidth}});
}

template <class T>
SkipGradients<T> gradients_of(const Backward<Skip>& b) {
  const bool passed = b.din.x.data == b.dout.y.data;  // the memory plan lets it share its place
  return {source<T>(b.in.x),          source<T>(b.in.skip),     source<T>(b.dout.y),
          source<float>(b.in.weight), source<float>(b.in.gate), passed ? Sink<T>{} : sink<T>(b.din.x),
          sink<T>(b.din.skip)};
}

}  // namespace

void forward(const Skip&, const Forward<Skip>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.x.rows(), width = f.in.x.cols();
  with_type(f.in.x, vectors(f, width), [&]<class T, int V>() {
    skip_forward<T, V><<<blocks_for(scratch.context(), rows, kWarps), kThreads, 0, scratch.stream()>>>(
        rows, width, source<T>(f.in.x), source<T>(f.in.skip), source<float>(f.in.weight), source<float>(f.in.gate),
        sink<T>(f.out.y));
  });
  check_launch("skip");
}

void backward(const Skip&, const Backward<Skip>& b) {
  Scratch scratch(b.queue);
  const int64_t rows = b.in.x.rows(), width = b.in.x.cols();
  if (width == 512 && b.in.x.spec.dtype == DType::bf16 && b.dout.y && rows < (int64_t{1} << 31) && vectors(b, width)) {
    const auto args = gradients_of<bf16>(b);
    return b.in.gate ? launch_rows<2, true>(scratch, b, args) : launch_rows<2, false>(scratch, b, args);
  }
  with_type(b.in.x, vectors(b, width), [&]<class T, int V>() {
    const int64_t padded = spread_width(width, V);
    const int warps = column_warps(2 * padded), blocks = column_blocks(scratch.context(), rows, warps);
    const Partials partials{scratch.take<float>(blocks * 2 * width), blocks, 2 * width};
    skip_backward<T, V><<<blocks, warps * 32, static_cast<size_t>(warps * 2 * padded) * sizeof(float), scratch.stream()>>>(
        rows, width, gradients_of<T>(b), padded, partials);
    check_launch("skip'");
    add_columns(scratch, partials, {{b.din.weight, width}, {b.din.gate, width}});
  });
}

}  // namespace fairway::cuda
