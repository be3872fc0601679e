#include "ops/project_residual.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan ProjectResidual::plan(const In& in) const {
  require_matrix(in.weight, in.h.cols(), name, "weight");
  const int64_t rows = in.h.rows(), out = in.weight.dim(0);
  require(in.scale.numel() == out, name, "scale must have one number per output");
  if (in.x) require(in.x.rows() == rows && in.x.cols() == out, name, "x must be (M, N) but is " + in.x.spec.shape.text());
  return {.out = {like(in.h, {rows, out})},
          .backward_workspace = 2 * bytes_of(in.h, in.weight.numel()),
          .flops = product_flops(rows, out, in.h.cols())};
}

}  // namespace fairway
