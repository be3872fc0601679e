#include "ops/add.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan Add::plan(const In& in) const {
  require_same(in.a, in.b, name, "a and b");
  return {.out = {in.a.spec}};
}

}  // namespace fairway
