// Orthogonalisation of whole banks by batched products: A = XXᵀ, B = b·A + c·A², X ← a·X + B·X. A tall matrix is worked on as
// it lies, Y = Xᵀ: A = YᵀY, Y ← a·Y + Y·B, so nothing is transposed.
#include <algorithm>

#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/gemm.h"

namespace fairway::cuda {
namespace {

constexpr int kParts = 16;  // partial sums of a matrix
constexpr float kTiny = 1e-7f;

template <class T>
__global__ void squares_of(int64_t size, const T* x, double* partials) {  // grid (parts, matrices)
  __shared__ double sums[kWarps];
  const int64_t begin = size * blockIdx.x / kParts, end = size * (blockIdx.x + 1) / kParts;
  double total = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const float v = to_float(x[blockIdx.y * size + i]);
    total += static_cast<double>(v * v);
  }
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (lane_id() == 0) sums[warp_id()] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int i = 1; i < kWarps; ++i) total += sums[i];
  partials[blockIdx.y * kParts + blockIdx.x] = total;
}

template <class T>
__global__ void normalize(int64_t size, const T* u, const double* partials, T* x) {  // grid (any, matrices)
  double total = 0;
  for (int i = 0; i < kParts; ++i) total += partials[blockIdx.y * kParts + i];
  const auto inverse = static_cast<float>(1 / (sqrt(total) + 1e-7));
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < size; i += int64_t{gridDim.x} * kThreads)
    assign(x[blockIdx.y * size + i], to_float(u[blockIdx.y * size + i]) * inverse);
}

// factor[i] = 1/(√Σ + 1e-7) for each of `lines` rows (or columns) of a matrix (rows, cols): Σ of squares, or of absolute
// values.
template <class T>
__global__ void line_factors(int64_t rows, int64_t cols, bool columns, bool absolute, const T* x, float* factors) {
  const int64_t lines = columns ? cols : rows, length = columns ? rows : cols;
  const int64_t line = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id();
  if (line >= lines) return;
  float total = 0;
  for (int64_t i = lane_id(); i < length; i += 32) {
    const float v = to_float(x[blockIdx.y * rows * cols + (columns ? i * cols + line : line * cols + i)]);
    total += absolute ? fabsf(v) : v * v;
  }
  total = warp_sum(total);
  if (lane_id() == 0) factors[blockIdx.y * lines + line] = 1.0f / (sqrtf(total) + kTiny);
}

template <class T>
__global__ void scale_lines(int64_t rows, int64_t cols, bool columns, const float* factors, T* x) {
  const int64_t lines = columns ? cols : rows;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < rows * cols; i += int64_t{gridDim.x} * kThreads) {
    T& value = x[blockIdx.y * rows * cols + i];
    assign(value, to_float(value) * factors[blockIdx.y * lines + (columns ? i % cols : i / cols)]);
  }
}

template <class T>
class Bank {
 public:
  Bank(Scratch& scratch, const NewtonSchulz& op, const Forward<NewtonSchulz>& f)
      : scratch_(scratch),
        op_(op),
        count_(f.in.u.dim(0)),
        rows_(f.in.u.dim(1)),
        cols_(f.in.u.dim(2)),
        small_(std::min(rows_, cols_)),
        tall_(rows_ > cols_),
        out_(pointer<T>(f.out.o)) {
    x_ = reinterpret_cast<T*>(f.workspace.data);
    other_ = x_ + count_ * rows_ * cols_;
    gram_ = other_ + count_ * rows_ * cols_;
    mixed_ = gram_ + count_ * small_ * small_;
    factors_ = scratch.take<float>(count_ * std::max(rows_, cols_));
    auto* partials = scratch.take<double>(count_ * kParts);
    squares_of<T><<<dim3(kParts, matrices()), kThreads, 0, scratch.stream()>>>(rows_ * cols_, pointer<T>(f.in.u), partials);
    normalize<T><<<dim3(64, matrices()), kThreads, 0, scratch.stream()>>>(rows_ * cols_, pointer<T>(f.in.u), partials, x_);
    check_launch("newton_schulz");
  }

  void run() {
    if (op_.aol) {
      product(tall_ ? ProductLayout::tn : ProductLayout::nt, small_, small_, x_, x_, gram_, 1, 0, nullptr);
      scale_by(gram_, small_, small_, false, true, x_, tall_);
    }
    for (int32_t k = 0; k < op_.steps; ++k) {
      const auto& [a, b, c] = op_.coefficients[static_cast<size_t>(k)];
      T* next = k + 1 == op_.steps ? out_ : other_;
      product(tall_ ? ProductLayout::tn : ProductLayout::nt, small_, small_, x_, x_, gram_, 1, 0, nullptr);
      product(ProductLayout::nn, small_, small_, gram_, gram_, mixed_, static_cast<float>(c), static_cast<float>(b), gram_);
      product(ProductLayout::nn, rows_, cols_, tall_ ? x_ : mixed_, tall_ ? mixed_ : x_, next, 1, static_cast<float>(a), x_);
      other_ = x_;
      x_ = next;
    }
    // Rows of X are columns of a tall matrix.
    if (op_.post_norm_rows) scale_by(out_, rows_, cols_, tall_, false, out_, tall_);
    if (op_.post_norm_columns) scale_by(out_, rows_, cols_, !tall_, false, out_, !tall_);
  }

 private:
  unsigned matrices() const { return static_cast<unsigned>(count_); }

  void scale_by(const T* of, int64_t rows, int64_t cols, bool of_columns, bool absolute, T* x, bool columns) {
    const int64_t lines = of_columns ? cols : rows;
    line_factors<T><<<dim3(static_cast<unsigned>((lines + kWarps - 1) / kWarps), matrices()), kThreads, 0, scratch_.stream()>>>(
        rows, cols, of_columns, absolute, of, factors_);
    scale_lines<T><<<dim3(64, matrices()), kThreads, 0, scratch_.stream()>>>(rows_, cols_, columns, factors_, x);
    check_launch("newton_schulz norms");
  }

  // d (m, n) = alpha·a·b + beta·c for every matrix of the bank.
  void product(ProductLayout layout, int64_t m, int64_t n, const T* a, const T* b, T* d, float alpha, float beta, const T* c) {
    const int64_t whole = rows_ * cols_, square = small_ * small_;
    const auto stride = [&](const T* p) { return p == gram_ || p == mixed_ ? square : whole; };
    const bool gram = layout != ProductLayout::nn;
    scratch_.context().gemms().run({.layout = layout,
                                    .m = m,
                                    .n = n,
                                    .k = gram ? std::max(rows_, cols_) : small_,
                                    .in = kDType<T>,
                                    .out = kDType<T>,
                                    .a = a,
                                    .b = b,
                                    .c = c,
                                    .d = d,
                                    .alpha = alpha,
                                    .beta = beta,
                                    .batch = count_,
                                    .stride_a = stride(a),
                                    .stride_b = stride(b),
                                    .stride_d = stride(d),
                                    .any_batch = true},
                                   scratch_.stream());
  }

  Scratch& scratch_;
  const NewtonSchulz& op_;
  int64_t count_, rows_, cols_, small_;
  bool tall_;
  T *x_, *other_, *gram_, *mixed_, *out_;
  float* factors_;
};

}  // namespace

void forward(const NewtonSchulz& op, const Forward<NewtonSchulz>& f) {
  Scratch scratch(f.queue);
  with_type(f.in.u, false, [&]<class T, int V>() { Bank<T>(scratch, op, f).run(); });
}

}  // namespace fairway::cuda
