#include "ops/lane_merge.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan LaneMerge::plan(const In& in) const {
  require_same(in.lane0, in.lane1, name, "the lanes");
  return {.out = {in.lane0.spec}};
}

}  // namespace fairway
