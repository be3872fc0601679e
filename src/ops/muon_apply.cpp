#include "ops/muon_apply.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan MuonApply::plan(const In& in) const {
  require_bank(in.param, name);
  require_numel(in.o, in.param.numel(), name, "o");
  require_scalars(in.scalars, name);
  return {};
}

}  // namespace fairway
