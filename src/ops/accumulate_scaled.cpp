#include "ops/accumulate_scaled.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan AccumulateScaled::plan(const In& in) const {
  require_numel(in.source, in.target.numel(), name, "source");
  require_factor(in.coefficient, name);
  return {};
}

}  // namespace fairway
