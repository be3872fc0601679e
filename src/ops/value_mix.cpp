#include "ops/value_mix.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan ValueMix::plan(const In& in) const {
  require_same(in.v, in.embed, name, "v and embed");
  require_numel(in.scale, 1, name, "scale");
  return {.out = {in.v.spec}, .backward_workspace = partials_bytes(1)};
}

}  // namespace fairway
