// Orthogonalisation (spec §8.1.4–6, §8.3). The iterate is kept in double as X's columns one after another (l rows of s
// numbers), so that x ← a·x + b·A·x + c·A·(A·x) works on one column at a time and the planned workspace holds X and A = XXᵀ
// even for f32.
#include <array>
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

constexpr int64_t kMaxSide = 4096;  // of the shorter side: two columns on the stack
constexpr double kTiny = 1e-7;

struct Iterate {
  double *x, *gram;      // (l, s), (s, s)
  int64_t large, small;  // l, s
};

void compute_gram(const Iterate& it) {
  std::fill_n(it.gram, it.small * it.small, 0.0);
  for (int64_t column = 0; column < it.large; ++column) {
    const double* x = it.x + column * it.small;
    for (int64_t i = 0; i < it.small; ++i)
      for (int64_t j = 0; j < it.small; ++j) it.gram[i * it.small + j] += x[i] * x[j];
  }
}

void multiply(const Iterate& it, const double* x, double* out) {  // out = A·x
  for (int64_t i = 0; i < it.small; ++i) out[i] = sum(it.small, [&](int64_t j) { return it.gram[i * it.small + j] * x[j]; });
}

void iterate(const Iterate& it, const std::array<double, 3>& abc) {
  std::array<double, kMaxSide> once, twice;
  compute_gram(it);
  for (int64_t column = 0; column < it.large; ++column) {
    double* x = it.x + column * it.small;
    multiply(it, x, once.data());
    multiply(it, once.data(), twice.data());
    for (int64_t i = 0; i < it.small; ++i) {
      const auto k = static_cast<size_t>(i);
      x[i] = abc[0] * x[i] + abc[1] * once[k] + abc[2] * twice[k];
    }
  }
}

void scale_rows(const Iterate& it, bool by_gram) {  // rows of X: by √Σ|A_ij| (AOL) or by their norms
  if (by_gram) compute_gram(it);
  for (int64_t i = 0; i < it.small; ++i) {
    const double squares = by_gram ? sum(it.small, [&](int64_t j) { return std::abs(it.gram[i * it.small + j]); })
                                   : sum(it.large, [&](int64_t j) { return it.x[j * it.small + i] * it.x[j * it.small + i]; });
    for (int64_t j = 0; j < it.large; ++j) it.x[j * it.small + i] /= std::sqrt(squares) + kTiny;
  }
}

void scale_columns(const Iterate& it) {
  for (int64_t j = 0; j < it.large; ++j) {
    double* x = it.x + j * it.small;
    const double norm = std::sqrt(sum(it.small, [&](int64_t i) { return x[i] * x[i]; }));
    for (int64_t i = 0; i < it.small; ++i) x[i] /= norm + kTiny;
  }
}

}  // namespace

void forward(const NewtonSchulz& op, const Forward<NewtonSchulz>& f) {
  with_dtype(f.in.u, [&]<class T>() {
    const Values<T> u(f.in.u);
    const Target<T> o(f.out.o);
    const int64_t rows = f.in.u.dim(1), cols = f.in.u.dim(2), small = std::min(rows, cols), large = std::max(rows, cols);
    FAIRWAY_ASSERT(small <= kMaxSide, "the shorter side of a matrix is too long");
    double* x = zeros(f.workspace, small * large + small * small);
    const Iterate it{.x = x, .gram = x + small * large, .large = large, .small = small};
    for (int64_t n = 0; n < f.in.u.dim(0); ++n) {
      const int64_t at = n * rows * cols;
      // Where element (large index j, small index i) of X lies in the matrix.
      const auto place = [&](int64_t j, int64_t i) { return at + (rows > cols ? j * cols + i : i * cols + j); };
      const double norm = std::sqrt(sum(rows * cols, [&](int64_t i) { return u[at + i] * u[at + i]; }));
      for (int64_t j = 0; j < large; ++j)
        for (int64_t i = 0; i < small; ++i) x[j * small + i] = u[place(j, i)] / (norm + kTiny);
      if (op.aol) scale_rows(it, true);
      for (int32_t k = 0; k < op.steps; ++k) iterate(it, op.coefficients[static_cast<size_t>(k)]);
      if (op.post_norm_rows) scale_rows(it, false);
      if (op.post_norm_columns) scale_columns(it);
      for (int64_t j = 0; j < large; ++j)
        for (int64_t i = 0; i < small; ++i) o.put(place(j, i), x[j * small + i]);
    }
  });
}

}  // namespace fairway::ref
