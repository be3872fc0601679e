#include "analysis/singular_values.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace fairway {
namespace {

double dot(const double* a, const double* b, int64_t count) {
  std::array<double, 4> sums{};  // independent chains, added in a fixed order
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + static_cast<int64_t>(lane)] * b[i + static_cast<int64_t>(lane)];
  double rest = 0;
  for (; i < count; ++i) rest += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest;
}

void add_scaled(double* to, double factor, const double* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

// Turns x into the v of H = I − v·vᵀ with H·x = alpha·e_0, ‖v‖² = 2, and returns alpha; v = 0 where x is zero.
double make_reflector(std::span<double> x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  if (largest == 0) return 0;
  for (double& value : x) value /= largest;
  const double norm = std::sqrt(dot(x.data(), x.data(), static_cast<int64_t>(x.size())));
  const double alpha = x[0] > 0 ? -norm : norm;
  x[0] -= alpha;
  const double scale = std::sqrt(2 / dot(x.data(), x.data(), static_cast<int64_t>(x.size())));
  for (double& value : x) value *= scale;
  return alpha * largest;
}

struct Bidiagonal {
  std::vector<double> chain;  // d_0, e_0, d_1, e_1, …, d_{n−1}: magnitudes
};

// a: (m, n), m >= n, row-major; overwritten. Each step reads the rest of the matrix once and rewrites it once: the column's
// reflection and the row's go over a row together.
Bidiagonal bidiagonalize(std::vector<double>& a, int64_t m, int64_t n) {
  Bidiagonal out;
  std::vector<double> column, sums(static_cast<size_t>(n)), row;
  for (int64_t k = 0; k < n; ++k) {
    column.clear();
    for (int64_t i = k; i < m; ++i) column.push_back(a[static_cast<size_t>(i * n + k)]);
    out.chain.push_back(std::abs(make_reflector(column)));
    const int64_t right = n - k - 1;  // columns after k
    if (right == 0) break;
    std::fill_n(sums.begin(), right, 0.0);
    const auto rest_of = [&](int64_t i) { return a.data() + i * n + k + 1; };
    for (int64_t i = k; i < m; ++i) add_scaled(sums.data(), column[static_cast<size_t>(i - k)], rest_of(i), right);
    add_scaled(rest_of(k), -column[0], sums.data(), right);
    row.assign(rest_of(k), rest_of(k) + right);
    out.chain.push_back(std::abs(make_reflector(row)));
    for (int64_t i = k + 1; i < m; ++i) {
      double* rest = rest_of(i);
      add_scaled(rest, -column[static_cast<size_t>(i - k)], sums.data(), right);
      add_scaled(rest, -dot(rest, row.data(), right), row.data(), right);
    }
  }
  return out;
}

// The two diagonals, interleaved beside a zero diagonal, make a symmetric matrix with eigenvalues ±σ. As many are below x > 0
// as pivots of the shifted matrix are negative: 2n less the values at or above x.
int64_t values_from(double x, const std::vector<double>& squares) {
  constexpr double kLeastPivot = 1e-290;
  double pivot = -x;
  int64_t below = 1;
  for (const double square : squares) {
    if (std::abs(pivot) < kLeastPivot) pivot = -kLeastPivot;
    pivot = -x - square / pivot;
    below += pivot < 0;
  }
  return static_cast<int64_t>(squares.size()) + 1 - below;
}

}  // namespace

std::vector<double> singular_values(std::span<const float> values, int64_t rows, int64_t cols) {
  FAIRWAY_ASSERT(static_cast<int64_t>(values.size()) == rows * cols, "a matrix of another size than its values");
  const int64_t m = std::max(rows, cols), n = std::min(rows, cols);
  if (n == 0) return {};
  double largest = 0;
  for (const float value : values) {
    FAIRWAY_ASSERT(std::isfinite(value), "singular values of a matrix that is not finite");
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  }
  std::vector<double> found(static_cast<size_t>(n), 0.0);
  if (largest == 0) return found;
  std::vector<double> a(static_cast<size_t>(m * n));  // of size one, so that no square overflows or vanishes
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      a[static_cast<size_t>(i * n + j)] =
          static_cast<double>(values[static_cast<size_t>(rows >= cols ? i * n + j : j * m + i)]) / largest;
  const Bidiagonal b = bidiagonalize(a, m, n);
  std::vector<double> squares;
  for (const double value : b.chain) squares.push_back(value * value);
  double bound = 0;
  for (size_t i = 0; i < b.chain.size(); ++i) bound = std::max(bound, b.chain[i] + (i > 0 ? b.chain[i - 1] : 0));
  for (int64_t k = 0; k < n; ++k) {
    double low = 0, high = k == 0 ? bound * (1 + 1e-15) : found[static_cast<size_t>(k - 1)] / largest;
    high = std::nextafter(high, 2 * high);
    for (int step = 0; step < 80 && high - low > 1e-16 * bound; ++step) {
      const double middle = 0.5 * (low + high);
      (values_from(middle, squares) > k ? low : high) = middle;
    }
    found[static_cast<size_t>(k)] = 0.5 * (low + high) * largest;
    if (k > 0) found[static_cast<size_t>(k)] = std::min(found[static_cast<size_t>(k)], found[static_cast<size_t>(k - 1)]);
  }
  return found;
}

}  // namespace fairway
