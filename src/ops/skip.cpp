#include "ops/skip.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan Skip::plan(const In& in) const {
  require_same(in.x, in.skip, name, "x and skip");
  require_numel(in.weight, in.x.cols(), name, "weight");
  if (in.gate) require_numel(in.gate, in.x.cols(), name, "gate");
  return {.out = {in.x.spec}, .backward_workspace = partials_bytes(2 * in.x.cols())};
}

}  // namespace fairway
