#include "ops/pick_rows.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan PickRows::plan(const In& in) const {
  require(in.x.spec.shape.rank == 2, name, "x must be (M, C) but is " + in.x.spec.shape.text());
  require_indices(in.rows, in.rows.numel(), name, "rows");
  return {.out = {like(in.x, {in.rows.numel(), in.x.cols()})}};
}

}  // namespace fairway
