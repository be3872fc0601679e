// A block takes a part of a group's rows twice: a warp for each row finds Σe^z, then a thread for each pair of columns sums
// over the rows. Nothing but u is read, in its type; sums, shifts and steps are float. Parts and orders are fixed, so that
// neither atomics nor the number of groups change a bit.
#include "ops/cuda/adamw.cuh"
#include "ops/cuda/cuda.h"
#include "ops/cuda/softcap.cuh"

namespace fairway::cuda {
namespace {

constexpr int kParts = static_cast<int>(OffsetFit::kParts);
constexpr int kRowsAtOnce = 256;
constexpr int kColumns = 32;  // of the gradient, to a block

struct Sizes {
  int64_t rows, vocab, width;  // rows: T of a group
  float cap, low;              // |z| <= cap; e^(z − low) and its sums fit in a float
};

__device__ float exponent(const Sizes& n, float z) { return z - n.low; }

// grid (V/kWarps, G): E·δ, in float and as the op gives it.
template <class T>
__global__ void offset_shift(Sizes n, const T* table, const float* offset, float* shift, T* out) {
  const int64_t v = warp_index(), group = blockIdx.y;
  if (v >= n.vocab) return;
  float total = 0;
  for (int64_t d = lane_id(); d < n.width; d += 32) total += to_float(table[v * n.width + d]) * offset[group * n.width + d];
  total = warp_sum(total);
  if (lane_id() != 0) return;
  shift[group * n.vocab + v] = total;
  assign(out[group * n.vocab + v], total);
}

// grid (kParts, G): Σ (p − onehot)·(1 − (z/cap)²) of a part's rows, for each column. W columns lie together.
template <class T, int W>
__global__ void offset_residuals(Sizes n, Source<T> logits, Source<float> shifts, const int32_t* targets, float* partials) {
  __shared__ float inverse[kRowsAtOnce];
  __shared__ int32_t wanted[kRowsAtOnce];
  const int64_t group = blockIdx.y, part = blockIdx.x, shift = group * n.vocab;
  const int64_t begin = group * n.rows + n.rows * part / kParts, end = group * n.rows + n.rows * (part + 1) / kParts;
  float* sums = partials + (group * kParts + part) * n.vocab;
  float x[W], s[W];
  const auto capped = [&](int64_t row, int64_t c) {
    logits.load(row * n.vocab + c, x);
#pragma unroll
    for (int k = 0; k < W; ++k) x[k] = soft_cap<T>(x[k] + s[k], n.cap);
  };
  for (int64_t at = begin; at == begin || at < end; at += kRowsAtOnce) {
    const int rows = static_cast<int>(min(end - at, int64_t{kRowsAtOnce}));
    for (int r = warp_id(); r < rows; r += kWarps) {
      const int32_t target = targets[at + r];
      float total = 0;
      for (int64_t c = lane_id() * W; c < n.vocab && target >= 0; c += 32 * W) {
        shifts.load(shift + c, s);
        capped(at + r, c);
#pragma unroll
        for (int k = 0; k < W; ++k) total += exponential<T>(exponent(n, x[k]));
      }
      total = warp_sum(total);
      if (lane_id() == 0) {
        wanted[r] = target;
        inverse[r] = 1.0f / total;
      }
    }
    __syncthreads();
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * W; c < n.vocab; c += kThreads * W) {
      float sum[W] = {};
      if (at > begin) Source<float>{sums}.load(c, sum);
      shifts.load(shift + c, s);
      for (int r = 0; r < rows; ++r) {
        if (wanted[r] < 0) continue;
        capped(at + r, c);
#pragma unroll
        for (int k = 0; k < W; ++k) {
          const float t = x[k] / n.cap, p = exponential<T>(exponent(n, x[k])) * inverse[r];
          sum[k] += (p - (wanted[r] == c + k ? 1.0f : 0.0f)) * (1 - t * t);
        }
      }
      Sink<float>{sums, false}.store(c, sum);
    }
    __syncthreads();
  }
}

__global__ void join_parts(Sizes n, int64_t count, const float* partials, float* residuals) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    float total = 0;
    for (int part = 0; part < kParts; ++part) total += partials[(i / n.vocab * kParts + part) * n.vocab + i % n.vocab];
    residuals[i] = total;
  }
}

// grid (D/kColumns, G): Eᵀ·r and the step of AdamW; a lane takes a column of E, warps share the vocabulary.
template <class T>
__global__ void offset_step(Sizes n, OffsetFit op, int step, const int32_t* taken, const T* table, const int32_t* targets,
                            const float* residuals, float* offset, float* m, float* v) {
  __shared__ float sums[kWarps][kColumns];
  const int64_t group = blockIdx.y, d = int64_t{blockIdx.x} * kColumns + lane_id();
  int count = 0;
  for (int64_t at = 0; at < n.rows; at += kThreads)
    count += __syncthreads_count(at + threadIdx.x < n.rows && targets[group * n.rows + at + threadIdx.x] >= 0 ? 1 : 0);
  float total = 0;
  for (int64_t row = warp_id(); row < n.vocab && d < n.width; row += kWarps)
    total += residuals[group * n.vocab + row] * to_float(table[row * n.width + d]);
  sums[warp_id()][lane_id()] = total;
  __syncthreads();
  if (warp_id() != 0 || d >= n.width || count == 0) return;
  for (int i = 1; i < kWarps; ++i) total += sums[i][lane_id()];
  const AdamWRates rates(op, op.learning_rate, taken[0] + step);
  const int64_t i = group * n.width + d;
  rates.take(total / static_cast<float>(count), offset[i], m[i], v[i]);
}

template <class T>
class Fit {
 public:
  Fit(const OffsetFit& op, const Forward<OffsetFit>& f)
      : op_(op),
        f_(f),
        scratch_(f.queue),
        groups_(f.in.offset.rows()),
        n_{op.steps > 0 ? f.in.logits.rows() / groups_ : 0, f.in.table.dim(0), f.in.offset.cols(), static_cast<float>(op.cap),
           op.cap <= 40 ? 0.0f : static_cast<float>(op.cap)},
        shift_(scratch_.take<float>(groups_ * n_.vocab)) {}

  void run() {
    put_shift();
    if (op_.steps == 0) return;
    auto* partials = scratch_.take<float>(groups_ * kParts * n_.vocab);
    auto* residuals = scratch_.take<float>(groups_ * n_.vocab);
    for (int step = 1; step <= op_.steps; ++step) {
      aligned() ? put_partials<2>(partials) : put_partials<1>(partials);
      join_parts<<<blocks_for(scratch_.context(), groups_ * n_.vocab), kThreads, 0, scratch_.stream()>>>(n_, groups_ * n_.vocab,
                                                                                                         partials, residuals);
      check_launch("offset_fit, residuals");
      offset_step<T><<<blocks((n_.width + kColumns - 1) / kColumns), kThreads, 0, scratch_.stream()>>>(
          n_, op_, step, pointer<int32_t>(f_.in.taken), pointer<T>(f_.in.table), pointer<int32_t>(f_.in.targets), residuals,
          pointer<float>(f_.in.offset), pointer<float>(f_.in.m), pointer<float>(f_.in.v));
      check_launch("offset_fit, step");
      put_shift();
    }
  }

 private:
  dim3 blocks(int64_t across) const { return {static_cast<unsigned>(across), static_cast<unsigned>(groups_)}; }
  bool aligned() const {  // a pair of columns is read at once
    return n_.vocab % 2 == 0 && reinterpret_cast<uintptr_t>(f_.in.logits.data) % (2 * sizeof(T)) == 0;
  }
  void put_shift() {
    offset_shift<T><<<blocks((n_.vocab + kWarps - 1) / kWarps), kThreads, 0, scratch_.stream()>>>(
        n_, pointer<T>(f_.in.table), pointer<float>(f_.in.offset), shift_, pointer<T>(f_.out.shift));
    check_launch("offset_fit, shift");
  }
  template <int W>
  void put_partials(float* partials) {
    offset_residuals<T, W><<<blocks(kParts), kThreads, 0, scratch_.stream()>>>(
        n_, source<T>(f_.in.logits), Source<float>{shift_}, pointer<int32_t>(f_.in.targets), partials);
    check_launch("offset_fit, rows");
  }

  const OffsetFit& op_;
  const Forward<OffsetFit>& f_;
  Scratch scratch_;
  int64_t groups_;
  Sizes n_;
  float* shift_;
};

}  // namespace

void forward(const OffsetFit& op, const Forward<OffsetFit>& f) {
  if (f.in.offset.rows() == 0) return;
  with_type(f.in.table, false, [&]<class T, int>() { Fit<T>(op, f).run(); });
}

}  // namespace fairway::cuda
