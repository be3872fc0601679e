#include "ops/plan_rules.h"

#include "ops/op.h"
#include "ops/step_scalars.h"

namespace fairway {

void require_matrix(const Tensor& w, int64_t columns, std::string_view op, const char* what) {
  require(w.spec.shape.rank == 2 && w.dim(1) == columns, op,
          std::string(what) + " must be (·, " + std::to_string(columns) + ") but is " + w.spec.shape.text());
}

double product_flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

size_t bytes_of(const Tensor& like_this, int64_t count) { return static_cast<size_t>(count) * size_of(like_this.spec.dtype); }

void require_same(const Tensor& a, const Tensor& b, std::string_view op, const char* what) {
  require(a.spec == b.spec, op, std::string(what) + " must match: " + a.spec.shape.text() + " and " + b.spec.shape.text());
}

void require_numel(const Tensor& x, int64_t count, std::string_view op, const char* what) {
  require(x.numel() == count, op,
          std::string(what) + " must have " + std::to_string(count) + " elements but is " + x.spec.shape.text());
}

void require_indices(const Tensor& x, int64_t count, std::string_view op, const char* what) {
  require(x.spec.dtype == DType::i32, op, std::string(what) + " must be i32");
  require_numel(x, count, op, what);
}

void require_square(const Tensor& matrix, int64_t side, std::string_view op, const char* what) {
  require(matrix.spec.shape.rank == 2 && matrix.dim(0) == side && matrix.dim(1) == side, op,
          std::string(what) + " must be (" + std::to_string(side) + ", " + std::to_string(side) + ") but is " +
              matrix.spec.shape.text());
}

void require_doubles(const Tensor& tensor, int64_t count, std::string_view op, const char* what) {
  require(tensor.spec.dtype == DType::f64 && tensor.numel() == count, op,
          std::string(what) + " must be f64 with " + std::to_string(count) + " elements but is " + tensor.spec.shape.text());
}

void require_same_count(const Tensor& a, const Tensor& b, std::string_view op, const char* what) {
  require(a.numel() == b.numel() && a.spec.dtype == b.spec.dtype, op,
          std::string(what) + " must match: " + a.spec.shape.text() + " and " + b.spec.shape.text());
}

void require_scalars(const Tensor& scalars, std::string_view op) {
  require(scalars && scalars.spec.dtype == DType::f64 && scalars.numel() == kStepScalars, op,
          "scalars must be the f64 step scalars");
}

void require_factor(const Tensor& factor, std::string_view op) {
  if (factor) require(factor.spec.dtype == DType::f64 && factor.numel() >= 1, op, "the coefficient must be f64");
}

void require_bank(const Tensor& bank, std::string_view op) {
  require(bank.spec.shape.rank == 3, op, "a bank must be (n, R, C) but is " + bank.spec.shape.text());
}

}  // namespace fairway
