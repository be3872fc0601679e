// The factor of the inverse in the published three steps: Cholesky, inverse, Cholesky (scoring spec §4.5).
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

bool cholesky(double* a, int64_t n) {  // the lower triangle in place; false: not positive definite
  for (int64_t j = 0; j < n; ++j) {
    const double pivot = a[j * n + j] - sum(j, [&](int64_t k) { return a[j * n + k] * a[j * n + k]; });
    if (!(pivot > 0) || !std::isfinite(pivot)) return false;
    a[j * n + j] = std::sqrt(pivot);
    for (int64_t i = j + 1; i < n; ++i)
      a[i * n + j] = (a[i * n + j] - sum(j, [&](int64_t k) { return a[i * n + k] * a[j * n + k]; })) / a[j * n + j];
  }
  return true;
}

void invert_lower(const double* l, double* x, int64_t n) {  // x = L⁻¹, lower
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) {
      const double known = sum(i - j, [&](int64_t k) { return l[i * n + j + k] * x[(j + k) * n + j]; });
      x[i * n + j] = ((i == j ? 1.0 : 0.0) - known) / l[i * n + i];
    }
}

}  // namespace

void forward(const CholeskyInverse& op, const Forward<CholeskyInverse>& f) {
  with_dtype(f.in.factor, [&]<class T>() {
    const int64_t n = f.in.matrix.cols();
    const double* matrix = f.in.matrix.as<double>();
    double* a = zeros(f.workspace, 2 * n * n);
    double* inverse = a + n * n;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) a[i * n + j] = matrix[i * n + j] + (i == j ? op.damping : 0);
    T* factor = f.in.factor.as<T>();
    std::fill_n(factor, n * n, T{0});
    bool definite = cholesky(a, n);
    if (definite) {
      invert_lower(a, inverse, n);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j)
          a[i * n + j] = sum(n - i, [&](int64_t k) { return inverse[(i + k) * n + i] * inverse[(i + k) * n + j]; });
      definite = cholesky(a, n);
    }
    f.in.status.as<double>()[0] = definite ? 1 : 0;
    if (!definite) return;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = i; j < n; ++j) factor[i * n + j] = static_cast<T>(a[j * n + i]);
  });
}

}  // namespace fairway::ref
