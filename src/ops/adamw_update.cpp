#include "ops/adamw_update.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan AdamWUpdate::plan(const In& in) const {
  require_same_count(in.param, in.grad, name, "param and grad");
  require_same_count(in.param, in.m, name, "param and m");
  require_same_count(in.param, in.v, name, "param and v");
  require_factor(in.clip, name);
  require_scalars(in.scalars, name);
  return {};
}

}  // namespace fairway
