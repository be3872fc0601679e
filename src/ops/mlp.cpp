#include "ops/mlp.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan Mlp::plan(const In& in) const {
  const int64_t rows = in.m.rows(), width = in.m.cols();
  require_matrix(in.up, width, name, "up");
  const int64_t hidden = in.up.dim(0);
  require_matrix(in.down, hidden, name, "down");
  require(in.down.dim(0) == width && in.scale.numel() == width, name, "down must be (D, F) and scale (D)");
  if (in.x) require(in.x.spec == in.m.spec, name, "x must match m");
  const Spec hidden_spec = like(in.m, {rows, hidden});
  return {.out = {in.m.spec},
          .saved = {hidden_spec, hidden_spec},
          .backward_workspace = bytes_of(in.m, 2 * width * hidden + rows * hidden),
          .flops = 2 * product_flops(rows, hidden, width)};
}

}  // namespace fairway
