#include "ops/accumulate_scaled.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan AccumulateScaled::plan(const In& in) const {
  require_same_count(in.target, in.source, name, "target and source");
  require_factor(in.coefficient, name);
  return {};
}

}  // namespace fairway
