#include "ops/distribution_digest.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan DistributionDigest::plan(const In& in) const {
  require(in.logits.spec.shape.rank == 2, name, "logits must be (N, V) but is " + in.logits.spec.shape.text());
  const int64_t rows = in.logits.rows();
  require_numel(in.lse, rows, name, "lse");
  require(cap > 0, name, "cap must be positive");
  require(damping >= 0, name, "damping must not be negative");
  require(in.hint.present == in.strength.present, name, "hint and strength come together");
  if (!in.hint.present) return {.out = {{{rows, kColumns}, DType::i32}}};
  require_indices(in.hint, rows, name, "hint");
  require_numel(in.strength, rows, name, "strength");
  return {.out = {{{rows, kTiltedColumns}, DType::i32}}};
}

}  // namespace fairway
