#include "ops/muon_momentum.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan MuonMomentum::plan(const In& in) const {
  require_bank(in.grad, name);
  require_same_count(in.grad, in.buffer, name, "grad and buffer");
  require_factor(in.clip, name);
  require_scalars(in.scalars, name);
  return {.out = {in.grad.spec}};
}

}  // namespace fairway
