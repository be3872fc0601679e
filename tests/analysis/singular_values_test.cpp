// Singular values against LAPACK on random matrices, and against matrices made to have known ones.
#include "analysis/singular_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/spectra.h"
#include "base/rng.h"

#ifdef FAIRWAY_LAPACK
extern "C" void dgesvd_(const char* jobu, const char* jobvt, const int* m, const int* n, double* a, const int* lda, double* s,
                        double* u, const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork, int* info);
#endif

namespace fairway {
namespace {

std::vector<float> gaussian(int64_t rows, int64_t cols, uint64_t seed, double size = 1) {
  Rng rng(seed);
  std::vector<float> values(static_cast<size_t>(rows * cols));
  for (float& value : values) value = static_cast<float>(size * rng.normal());
  return values;
}

void expect_close(const std::vector<double>& have, const std::vector<double>& want, double tolerance, const std::string& what) {
  ASSERT_EQ(have.size(), want.size()) << what;
  const double size = want.empty() ? 1 : std::max(want.front(), 1e-300);
  for (size_t i = 0; i < have.size(); ++i)
    EXPECT_TRUE(std::abs(have[i] - want[i]) <= tolerance * size)
        << what << ": value " << i << " is " << have[i] << ", not " << want[i];
  EXPECT_TRUE(std::is_sorted(have.rbegin(), have.rend())) << what;
}

#ifdef FAIRWAY_LAPACK
std::vector<double> lapack(const std::vector<float>& values, int64_t rows, int64_t cols) {
  std::vector<double> a(values.begin(), values.end());  // row-major (rows, cols) is column-major (cols, rows)
  const int m = static_cast<int>(cols), n = static_cast<int>(rows), one = 1;
  std::vector<double> s(static_cast<size_t>(std::min(m, n))), work(static_cast<size_t>(10 * (m + n)) + 64);
  const int size = static_cast<int>(work.size());
  double none = 0;
  int info = -1;
  dgesvd_("N", "N", &m, &n, a.data(), &m, s.data(), &none, &one, &none, &one, work.data(), &size, &info);
  EXPECT_EQ(info, 0);
  return s;
}

TEST(SingularValues, EqualLapackOnRandomMatrices) {
  struct Case {
    int64_t rows, cols;
    double size;
  };
  uint64_t seed = 0;
  for (const Case c : {Case{1, 1, 1},
                       {1, 7, 1},
                       {7, 1, 1},
                       {2, 2, 1e-20},
                       {3, 5, 1e12},
                       {16, 16, 1},
                       {17, 64, 0.05},
                       {64, 17, 0.05},
                       {96, 96, 1},
                       {128, 384, 0.02},
                       {384, 128, 0.02},
                       {200, 199, 1}}) {
    const std::vector<float> values = gaussian(c.rows, c.cols, ++seed, c.size);
    expect_close(singular_values(values, c.rows, c.cols), lapack(values, c.rows, c.cols), 1e-13,
                 std::to_string(c.rows) + " x " + std::to_string(c.cols));
  }
}

TEST(SingularValues, EqualLapackWhereMatricesAreNearlySingular) {
  const int64_t n = 80, rank = 9;
  const std::vector<float> left = gaussian(n, rank, 40), right = gaussian(rank, n, 41);
  std::vector<float> product(static_cast<size_t>(n * n)), graded = gaussian(n, n, 42);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t r = 0; r < rank; ++r) sum += left[static_cast<size_t>(i * rank + r)] * right[static_cast<size_t>(r * n + j)];
      product[static_cast<size_t>(i * n + j)] = sum;
      graded[static_cast<size_t>(i * n + j)] *= static_cast<float>(std::pow(10.0, -static_cast<double>(i) / 8));
    }
  expect_close(singular_values(product, n, n), lapack(product, n, n), 1e-13, "rank 9");
  expect_close(singular_values(graded, n, n), lapack(graded, n, n), 1e-13, "graded rows");
}
#endif

// Q_1·diag(s)·Q_2 with reflections Q: exact up to the rounding of its float entries.
TEST(SingularValues, AreThoseTheMatrixWasMadeOf) {
  const int64_t rows = 60, cols = 33;
  std::vector<double> a(static_cast<size_t>(rows * cols), 0.0), want;
  for (int64_t i = 0; i < cols; ++i) {
    want.push_back(std::pow(1.3, -static_cast<double>(i)));
    a[static_cast<size_t>(i * cols + i)] = want.back();
  }
  Rng rng(3);
  for (int round = 0; round < 3; ++round) {
    std::vector<double> u(static_cast<size_t>(rows)), v(static_cast<size_t>(cols));
    double uu = 0, vv = 0;
    for (double& x : u) x = rng.normal(), uu += x * x;
    for (double& x : v) x = rng.normal(), vv += x * x;
    for (int64_t j = 0; j < cols; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i) sum += u[static_cast<size_t>(i)] * a[static_cast<size_t>(i * cols + j)];
      for (int64_t i = 0; i < rows; ++i) a[static_cast<size_t>(i * cols + j)] -= 2 * sum / uu * u[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < cols; ++j) sum += v[static_cast<size_t>(j)] * a[static_cast<size_t>(i * cols + j)];
      for (int64_t j = 0; j < cols; ++j) a[static_cast<size_t>(i * cols + j)] -= 2 * sum / vv * v[static_cast<size_t>(j)];
    }
  }
  const std::vector<float> values(a.begin(), a.end());
  expect_close(singular_values(values, rows, cols), want, 1e-6, "made");
}

TEST(SingularValues, OfDegenerateMatricesAreWhatTheyMustBe) {
  EXPECT_TRUE(singular_values({}, 0, 5).empty());
  EXPECT_EQ(singular_values(std::vector<float>(12, 0.0F), 3, 4), std::vector<double>(3, 0.0));
  const std::vector<float> ones(20, 1.0F);
  expect_close(singular_values(ones, 4, 5), {std::sqrt(20.0), 0, 0, 0}, 1e-14, "ones");
  std::vector<float> same(36, 0.0F);
  for (size_t i = 0; i < 6; ++i) same[7 * i] = i % 2 == 0 ? 3.0F : -3.0F;
  expect_close(singular_values(same, 6, 6), std::vector<double>(6, 3.0), 1e-15, "one value six times");
  std::vector<float> diagonal(9, 0.0F);
  diagonal[0] = 2, diagonal[4] = -5, diagonal[8] = 1e-30F;
  expect_close(singular_values(diagonal, 3, 3), {5, 2, 1e-30}, 1e-15, "diagonal");
}

TEST(Rank, HoldsTheShareThatItIsAskedFor) {
  EXPECT_EQ(rank_holding({1, 1, 1, 1}, 0.99), 4);
  EXPECT_EQ(rank_holding({1, 1, 1, 1}, 0.5), 2);  // exactly the share
  EXPECT_EQ(rank_holding({1, 1, 1, 1}, 0.51), 3);
  EXPECT_EQ(rank_holding({10, 1, 0.1}, 0.99), 1);  // 100 of 101.01 is 0.99000…
  EXPECT_EQ(rank_holding({10, 1.1, 0.1}, 0.99), 2);
  EXPECT_EQ(rank_holding({0, 0}, 0.99), 0);
}

}  // namespace
}  // namespace fairway
