#include "ops/offset_fit.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan OffsetFit::plan(const In& in) const {
  require(in.offset.spec.shape.rank == 2, name, "offset must be (G, D) but is " + in.offset.spec.shape.text());
  require_matrix(in.table, in.offset.cols(), name, "table");
  require_same(in.offset, in.m, name, "offset and m");
  require_same(in.offset, in.v, name, "offset and v");
  require(cap > 0 && steps >= 0, name, "cap must be positive and steps not negative");
  const int64_t groups = in.offset.rows(), vocab = in.table.dim(0);
  const Spec shift = like(in.table, {groups, vocab});
  if (steps == 0) return {.out = {shift}};
  require(in.logits && in.targets && in.taken, name, "a fit needs logits, targets and taken");
  require(in.logits.cols() == vocab && in.logits.rows() % groups == 0, name,
          "logits must be (G·T, V) but is " + in.logits.spec.shape.text());
  require_indices(in.targets, in.logits.rows(), name, "targets");
  require_indices(in.taken, 1, name, "taken");
  return {.out = {shift}, .forward_workspace = bytes_of(in.offset, groups * ((3 * kParts + 1) * vocab + in.offset.cols()))};
}

}  // namespace fairway
