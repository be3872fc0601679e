#include "ops/muon_apply.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan MuonApply::plan(const In& in) const {
  require_bank(in.param, name);
  require_same_count(in.param, in.o, name, "param and o");
  require_scalars(in.scalars, name);
  return {};
}

}  // namespace fairway
