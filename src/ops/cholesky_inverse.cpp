#include "ops/cholesky_inverse.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan CholeskyInverse::plan(const In& in) const {
  const int64_t side = in.matrix.cols();
  require_square(in.matrix, side, name, "matrix");
  require_doubles(in.matrix, side * side, name, "matrix");
  require_square(in.factor, side, name, "factor");
  require_doubles(in.status, 1, name, "status");
  const auto n = static_cast<double>(side);
  return {.forward_workspace = static_cast<size_t>(2 * side * side) * sizeof(double), .flops = 2.0 / 3.0 * n * n * n};
}

}  // namespace fairway
