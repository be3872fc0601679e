// One Cholesky factorisation and one triangular inverse instead of the published Cholesky, inverse, Cholesky (scoring spec
// §4.5): with J the reversal of rows and columns and J·A·J = L·Lᵀ, the matrix U = J·L⁻¹·J is upper triangular and UᵀU = A⁻¹,
// and that factor is unique.
#include <cmath>

#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {
namespace {

constexpr int64_t kSide = 32;  // of a block: small enough that solving with its triangle costs little beside the products

int64_t blocks_of(int64_t n) { return (n + kSide - 1) / kSide; }

bool factor_diagonal(double* a, int64_t ld, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double* row = a + j * ld;
    double pivot = row[j];
    for (int64_t k = 0; k < j; ++k) pivot -= row[k] * row[k];
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    row[j] = std::sqrt(pivot);
    for (int64_t i = j + 1; i < n; ++i) {
      double* below = a + i * ld;
      double value = below[j];
      for (int64_t k = 0; k < j; ++k) value -= below[k] * row[k];
      below[j] = value / row[j];
    }
  }
  return true;
}

// Rows x of C with x·Tᵀ = c: forward substitution with the lower triangle T (n, n).
void solve_rows(double* c, int64_t ldc, int64_t rows, const double* triangle, int64_t ld, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) {
    double* x = c + i * ldc;
    for (int64_t j = 0; j < n; ++j) {
      const double* t = triangle + j * ld;
      double value = x[j];
      for (int64_t k = 0; k < j; ++k) value -= x[k] * t[k];
      x[j] = value / t[j];
    }
  }
}

// L of A = L·Lᵀ over the lower triangle of A, block column by block column; each needs only what is left of it.
bool factorize(ThreadPool& pool, double* a, int64_t n) {
  const auto subtract = kernels().quant.subtract_product;
  for (int64_t j = 0; j < n; j += kSide) {
    const int64_t width = std::min(kSide, n - j);
    double *panel = a + j * n, *diagonal = panel + j;
    subtract({.m = width, .n = width, .k = j, .a = panel, .lda = n, .b = panel, .ldb = n, .c = diagonal, .ldc = n});
    if (!factor_diagonal(diagonal, n, width)) return false;
    pool.parallel_for(blocks_of(n - j - width), [&](int64_t block) {
      const int64_t i = j + width + block * kSide, rows = std::min(kSide, n - i);
      double *left = a + i * n, *target = left + j;
      subtract({.m = rows, .n = width, .k = j, .a = left, .lda = n, .b = panel, .ldb = n, .c = target, .ldc = n});
      solve_rows(target, n, rows, diagonal, n, width);
    });
  }
  return true;
}

// y = (L⁻¹)ᵀ, so that both operands of every product are read along their rows; y is zero on entry. Rows are independent.
void invert_transposed(ThreadPool& pool, const double* l, double* y, int64_t n) {
  const auto subtract = kernels().quant.subtract_product;
  pool.parallel_for(blocks_of(n), [&](int64_t block) {
    const int64_t j = block * kSide, rows = std::min(kSide, n - j);
    double* row = y + j * n;
    for (int64_t i = 0; i < rows; ++i) row[i * n + j + i] = 1;
    for (int64_t i = j; i < n; i += kSide) {
      const int64_t width = std::min(kSide, n - i);
      const double* left = l + i * n;
      subtract({.m = rows, .n = width, .k = i - j, .a = row + j, .lda = n, .b = left + j, .ldb = n, .c = row + i, .ldc = n});
      solve_rows(row + i, n, rows, left + i, n, width);
    }
  });
}

}  // namespace

void forward(const CholeskyInverse& op, const Forward<CholeskyInverse>& call) {
  const int64_t n = call.in.matrix.cols();
  const double* matrix = call.in.matrix.as<double>();
  double *a = reinterpret_cast<double*>(call.workspace.data), *y = a + n * n;
  float* factor = call.in.factor.as<float>();
  for_rows(*call.queue, n, 2 * n, [&](RowRange range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int64_t from = n - 1 - i;  // row i of J·A·J below its diagonal is column `from` of A, here by symmetry
      for (int64_t j = 0; j <= i; ++j) a[i * n + j] = matrix[(n - 1 - j) * n + from];
      a[i * n + i] += op.damping;
      std::fill_n(y + i * n, n, 0.0);
      std::fill_n(factor + i * n, n, 0.0f);
    }
  });
  const bool definite = factorize(call.queue->pool(), a, n);
  call.in.status.as<double>()[0] = definite ? 1 : 0;
  if (!definite) return;
  invert_transposed(call.queue->pool(), a, y, n);
  call.queue->pool().parallel_for(blocks_of(n), [&](int64_t block) {
    const int64_t first = block * kSide, last = std::min(n, first + kSide);
    for (int64_t j = first; j < n; ++j)  // U_ij = (L⁻¹) at (n−1−i, n−1−j)
      for (int64_t i = first; i < std::min(last, j + 1); ++i)
        factor[i * n + j] = static_cast<float>(y[(n - 1 - j) * n + (n - 1 - i)]);
  });
}

}  // namespace fairway::cpu
