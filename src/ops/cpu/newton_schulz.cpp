// Newton–Schulz on banks (spec §8.1.4–6, §8.3). A tall matrix is kept as it is: with Y = Xᵀ, A = YᵀY and Y ← Y·P, so nothing
// is transposed. Each iteration is a Gram matrix, P = aI + bA + cA², and one product; A and P are symmetric and only their
// lower blocks are multiplied out. Threads share out the matrices, or split each one when there are fewer than threads.
#include <cmath>

#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {
namespace {

constexpr double kTiny = 1e-7;
constexpr int64_t kSymmetricBlock = 128;  // rows of a symmetric product at a time
constexpr int64_t kNormBlock = 64;        // columns whose sums are on the stack

// One matrix of a bank and its workspace.
struct Iterate {
  ThreadPool& pool;
  void* scratch;
  int64_t rows, cols;     // of the matrix; s = min, l = max
  float *x, *next;        // (rows, cols)
  float *gram, *polynom;  // (s, s)
  bool tall() const { return rows > cols; }
  int64_t small() const { return std::min(rows, cols); }
};

// Copies what lies left of the diagonal blocks above them, in squares that keep both sides in the first-level cache.
void mirror(float* a, int64_t n) {
  constexpr int64_t kSquare = 16;
  static_assert(kSymmetricBlock % kSquare == 0);
  for (int64_t row = kSymmetricBlock; row < n; row += kSquare)
    for (int64_t col = 0; col < row / kSymmetricBlock * kSymmetricBlock; col += kSquare)
      for (int64_t j = col; j < col + kSquare; ++j)
        for (int64_t i = row; i < std::min(row + kSquare, n); ++i) a[j * n + i] = a[i * n + j];
}

// C = args' product, known to be symmetric (n, n).
void symmetric_product(const Iterate& it, GemmArgs args) {
  const int64_t n = args.m;
  const float* a = args.a;
  float* c = args.c;
  for (int64_t row = 0; row < n; row += kSymmetricBlock) {
    args.m = std::min(kSymmetricBlock, n - row);
    args.n = row + args.m;
    args.a = args.layout == ProductLayout::tn ? a + row : a + row * args.lda;
    args.c = c + row * args.ldc;
    gemm(it.pool, args, it.scratch);
  }
  mirror(c, n);
}

void compute_gram(const Iterate& it) {
  const int64_t s = it.small();
  symmetric_product(it, {.layout = it.tall() ? ProductLayout::tn : ProductLayout::nt,
                         .m = s,
                         .n = s,
                         .k = std::max(it.rows, it.cols),
                         .a = it.x,
                         .lda = it.cols,
                         .b = it.x,
                         .ldb = it.cols,
                         .c = it.gram,
                         .ldc = s});
}

// to = (aI + bA + cA²)·X.
void step(const Iterate& it, const std::array<double, 3>& abc, float* to) {
  const int64_t s = it.small();
  compute_gram(it);
  const float b = static_cast<float>(abc[1]);
  for (int64_t i = 0; i < s * s; ++i) it.polynom[i] = b * it.gram[i];
  for (int64_t i = 0; i < s; ++i) it.polynom[i * s + i] += static_cast<float>(abc[0]);
  symmetric_product(it, {.layout = ProductLayout::nt,
                         .m = s,
                         .n = s,
                         .k = s,
                         .a = it.gram,
                         .lda = s,
                         .b = it.gram,
                         .ldb = s,
                         .c = it.polynom,
                         .ldc = s,
                         .alpha = static_cast<float>(abc[2]),
                         .accumulate = true});
  gemm(it.pool,
       {.layout = ProductLayout::nn,
        .m = it.rows,
        .n = it.cols,
        .k = s,
        .a = it.tall() ? it.x : it.polynom,
        .lda = s,
        .b = it.tall() ? it.polynom : it.x,
        .ldb = it.cols,
        .c = to,
        .ldc = it.cols},
       it.scratch);
}

double inverse_root(double squares) { return 1.0 / (std::sqrt(squares) + kTiny); }

void normalize_rows(float* x, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i) {
    const double factor = inverse_root(kernels().update.sum_squares(x, {i * cols, (i + 1) * cols}));
    for (int64_t j = 0; j < cols; ++j) x[i * cols + j] = static_cast<float>(factor * static_cast<double>(x[i * cols + j]));
  }
}

void normalize_columns(float* x, int64_t rows, int64_t cols) {
  for (int64_t first = 0; first < cols; first += kNormBlock) {
    const int64_t count = std::min(kNormBlock, cols - first);
    double sums[kNormBlock] = {};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < count; ++j) {
        const double v = x[i * cols + first + j];
        sums[j] += v * v;
      }
    for (int64_t j = 0; j < count; ++j) sums[j] = inverse_root(sums[j]);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < count; ++j) {
        float& v = x[i * cols + first + j];
        v = static_cast<float>(sums[j] * static_cast<double>(v));
      }
  }
}

// Row i of X over √Σ_j |A_ij| + 1e-7 (spec §8.3).
void scale_by_gram(const Iterate& it) {
  const int64_t s = it.small();
  compute_gram(it);
  float* factors = it.polynom;
  for (int64_t i = 0; i < s; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < s; ++j) sum += std::abs(static_cast<double>(it.gram[i * s + j]));
    factors[i] = static_cast<float>(inverse_root(sum));
  }
  for (int64_t i = 0; i < it.rows; ++i)
    for (int64_t j = 0; j < it.cols; ++j) it.x[i * it.cols + j] *= it.tall() ? factors[j] : factors[i];
}

void orthogonalize(const NewtonSchulz& op, Iterate it, const float* u, float* o) {
  const int64_t count = it.rows * it.cols;
  const UpdateKernels& update = kernels().update;
  const double norm = std::sqrt(update.sum_squares(u, {0, count}));
  update.blend(0.0f, static_cast<float>(1.0 / (norm + kTiny)), {0, count}, it.x, u);
  if (op.aol) scale_by_gram(it);
  for (int32_t k = 0; k < op.steps; ++k) {
    step(it, op.coefficients[static_cast<size_t>(k)], k + 1 == op.steps ? o : it.next);
    std::swap(it.x, it.next);
  }
  if (op.post_norm_rows) it.tall() ? normalize_columns(o, it.rows, it.cols) : normalize_rows(o, it.rows, it.cols);
  if (op.post_norm_columns) it.tall() ? normalize_rows(o, it.rows, it.cols) : normalize_columns(o, it.rows, it.cols);
}

}  // namespace

void forward(const NewtonSchulz& op, const Forward<NewtonSchulz>& call) {
  const int64_t bank = call.in.u.dim(0), rows = call.in.u.dim(1), cols = call.in.u.dim(2), count = rows * cols;
  if (count == 0) return;
  const int64_t side = std::min(rows, cols) * std::min(rows, cols);
  float* workspace = reinterpret_cast<float*>(call.workspace.data);
  ThreadPool& team = call.queue->pool();
  const auto run = [&](ThreadPool& pool, void* scratch, int64_t i) {
    float* x = workspace + i * 2 * (count + side);
    const Iterate it{.pool = pool,
                     .scratch = scratch,
                     .rows = rows,
                     .cols = cols,
                     .x = x,
                     .next = x + count,
                     .gram = x + 2 * count,
                     .polynom = x + 2 * count + side};
    orthogonalize(op, it, call.in.u.as<float>() + i * count, call.out.o.as<float>() + i * count);
  };
  if (bank < team.threads()) {
    for (int64_t i = 0; i < bank; ++i) run(team, call.queue->scratch(gemm_workspace(team.threads())), i);
    return;
  }
  const size_t bytes = gemm_workspace(1);
  std::byte* scratch = call.queue->scratch(bytes * static_cast<size_t>(team.threads()));
  team.parallel_for_slots(team.threads(), bank, [&](int64_t slot, int64_t i) {
    ThreadPool alone(1);
    run(alone, scratch + bytes * static_cast<size_t>(slot), i);
  });
}

}  // namespace fairway::cpu
