#include "ops/lerp.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan Lerp::plan(const In& in) const {
  require_same_count(in.target, in.source, name, "target and source");
  if (slot) require_scalars(in.scalars, name);
  return {};
}

}  // namespace fairway
