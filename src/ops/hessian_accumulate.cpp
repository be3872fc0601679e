#include "ops/hessian_accumulate.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan HessianAccumulate::plan(const In& in) const {
  const int64_t columns = in.rows.cols();
  require(in.rows.spec.shape.rank == 2, name, "rows must be (N, C) but are " + in.rows.spec.shape.text());
  require_square(in.hessian, columns, name, "hessian");
  require_doubles(in.hessian, columns * columns, name, "hessian");
  const auto side = static_cast<double>(columns);
  return {.forward_workspace = static_cast<size_t>(kBlock * columns) * sizeof(float),
          .flops = static_cast<double>(in.rows.dim(0)) * side * (side + 1)};
}

}  // namespace fairway
