#include "ops/distribution_digest.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan DistributionDigest::plan(const In& in) const {
  require(in.logits.spec.shape.rank == 2, name, "logits must be (N, V) but is " + in.logits.spec.shape.text());
  require_numel(in.lse, in.logits.rows(), name, "lse");
  require(cap > 0, name, "cap must be positive");
  return {.out = {{{in.logits.rows(), 2}, DType::i32}}};
}

}  // namespace fairway
