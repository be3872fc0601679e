// Newton–Schulz against the published map of singular values (spec §8.2) and a literal transcription of the steps of §8.1,
// §8.3.
#include <gmock/gmock.h>

#include <cmath>

#include "ops/direct_call.h"
#include "ops/op_case.h"

namespace fairway::ops_test {
namespace {

class Matrix {
 public:
  Matrix(size_t rows, size_t cols) : rows_(rows), cols_(cols), values_(rows * cols) {}
  size_t rows() const { return rows_; }
  size_t cols() const { return cols_; }
  double& operator()(size_t r, size_t c) { return values_[r * cols_ + c]; }
  double operator()(size_t r, size_t c) const { return values_[r * cols_ + c]; }

  Matrix transposed() const {
    Matrix out(cols_, rows_);
    for (size_t r = 0; r < rows_; ++r)
      for (size_t c = 0; c < cols_; ++c) out(c, r) = (*this)(r, c);
    return out;
  }
  Matrix operator*(const Matrix& other) const {
    Matrix out(rows_, other.cols_);
    for (size_t r = 0; r < rows_; ++r)
      for (size_t c = 0; c < other.cols_; ++c)
        for (size_t k = 0; k < cols_; ++k) out(r, c) += (*this)(r, k) * other(k, c);
    return out;
  }
  double row_norm(size_t r) const {
    double squares = 0;
    for (size_t c = 0; c < cols_; ++c) squares += (*this)(r, c) * (*this)(r, c);
    return std::sqrt(squares);
  }
  void divide_row(size_t r, double divisor) {
    for (size_t c = 0; c < cols_; ++c) (*this)(r, c) /= divisor;
  }

 private:
  size_t rows_, cols_;
  std::vector<double> values_;
};

Matrix normalised_rows(Matrix x) {
  for (size_t r = 0; r < x.rows(); ++r) x.divide_row(r, x.row_norm(r) + 1e-7);
  return x;
}

Matrix transcription(const NewtonSchulz& rule, Matrix x) {
  const bool tall = x.rows() > x.cols();
  if (tall) x = x.transposed();
  double squares = 0;
  for (size_t r = 0; r < x.rows(); ++r) squares += x.row_norm(r) * x.row_norm(r);
  for (size_t r = 0; r < x.rows(); ++r) x.divide_row(r, std::sqrt(squares) + 1e-7);
  if (rule.aol) {
    const Matrix gram = x * x.transposed();
    for (size_t r = 0; r < x.rows(); ++r) {
      double total = 0;
      for (size_t c = 0; c < x.rows(); ++c) total += std::abs(gram(r, c));
      x.divide_row(r, std::sqrt(total) + 1e-7);
    }
  }
  for (int32_t k = 0; k < rule.steps; ++k) {
    const auto [a, b, c] = rule.coefficients[static_cast<size_t>(k)];
    const Matrix gram = x * x.transposed(), gram2 = gram * gram, bx = gram * x, cx = gram2 * x;
    for (size_t i = 0; i < x.rows(); ++i)
      for (size_t j = 0; j < x.cols(); ++j) x(i, j) = a * x(i, j) + b * bx(i, j) + c * cx(i, j);
  }
  if (rule.post_norm_rows) x = normalised_rows(x);
  if (rule.post_norm_columns) x = normalised_rows(x.transposed()).transposed();
  return tall ? x.transposed() : x;
}

std::vector<double> orthogonalise(const NewtonSchulz& rule, Shape bank, const std::vector<double>& u) {
  const Guarded input = doubles(bank, u);
  return call(rule, {input.tensor()})[0];
}

TEST(NewtonSchulz, MapsSingularValuesAsPublished) {
  struct Row {
    double sigma, ns5, polar5, turbo4;
  };
  const std::vector<Row> table{{0.001, 0.470544, 0.858873, 0.123527}, {0.01, 0.698917, 1.027110, 0.985140},
                               {0.1, 0.712120, 1.059161, 0.991425},   {0.3, 1.079592, 0.983142, 1.094573},
                               {0.6, 0.722876, 0.871286, 0.882227},   {1.0, 0.696436, 0.859129, 1.120211}};
  const auto mapped = [](const char* set, double sigma) {
    NewtonSchulz rule = newton_schulz_rule(set);
    rule.aol = rule.post_norm_rows = rule.post_norm_columns = false;
    // The other singular value makes the Frobenius norm 1, so that normalising changes nothing.
    return orthogonalise(rule, {1, 2, 2}, {sigma, 0, 0, std::sqrt(1 - sigma * sigma)})[0];
  };
  for (const Row& row : table) {
    EXPECT_NEAR(mapped("ns5", row.sigma), row.ns5, 2e-6) << row.sigma;
    EXPECT_NEAR(mapped("polar5", row.sigma), row.polar5, 2e-6) << row.sigma;
    EXPECT_NEAR(mapped("turbo4", row.sigma), row.turbo4, 2e-6) << row.sigma;
  }
}

TEST(NewtonSchulz, FollowsTheStepsOfTheSpecOnEveryMatrixOfABank) {
  NewtonSchulz rows_only = newton_schulz_rule("turbo4"), columns_only = rows_only;
  rows_only.post_norm_columns = columns_only.post_norm_rows = false;
  const std::vector<std::pair<const char*, NewtonSchulz>> rules{{"ns5", newton_schulz_rule("ns5")},
                                                                {"polar5", newton_schulz_rule("polar5")},
                                                                {"turbo4", newton_schulz_rule("turbo4")},
                                                                {"turbo4, rows only", rows_only},
                                                                {"turbo4, columns only", columns_only}};
  for (const auto& [set, rule] : rules)
    for (const Shape& bank : {Shape{2, 3, 5}, Shape{2, 5, 3}, Shape{3, 4, 4}, Shape{1, 1, 6}}) {
      const std::vector<double> u = content_of(uniform(bank), 7), o = orthogonalise(rule, bank, u);
      const auto rows = static_cast<size_t>(bank[1]), cols = static_cast<size_t>(bank[2]);
      for (size_t n = 0; n < static_cast<size_t>(bank[0]); ++n) {
        Matrix x(rows, cols);
        for (size_t i = 0; i < rows * cols; ++i) x(i / cols, i % cols) = u[n * rows * cols + i];
        const Matrix expected = transcription(rule, x);
        for (size_t i = 0; i < rows * cols; ++i)
          EXPECT_NEAR(o[n * rows * cols + i], expected(i / cols, i % cols), 1e-9) << set << " " << bank.text() << " " << i;
      }
    }
}

TEST(NewtonSchulz, LeavesZeroPaddingZero) {
  for (const char* set : {"ns5", "polar5", "turbo4"})
    for (double value : orthogonalise(newton_schulz_rule(set), {1, 3, 4}, std::vector<double>(12, 0.0))) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace fairway::ops_test
