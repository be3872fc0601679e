#include "ops/embed.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan Embed::plan(const In& in) const {
  require(in.tokens.spec.dtype == DType::i32, name, "tokens must be i32");
  require(in.table.spec.shape.rank == 2, name, "table must be (V, D) but is " + in.table.spec.shape.text());
  return {.out = {like(in.table, {in.tokens.numel(), in.table.dim(1)})}};
}

}  // namespace fairway
