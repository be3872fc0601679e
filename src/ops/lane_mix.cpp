#include "ops/lane_mix.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan LaneMix::plan(const In& in) const {
  require_same(in.lane0, in.lane1, name, "the lanes");
  require_same(in.lane0, in.attn, name, "lane and attn");
  require_same(in.lane0, in.mlp, name, "lane and mlp");
  require_numel(in.resid, 2, name, "resid");
  require_numel(in.post, 4, name, "post");
  return {.out = {in.lane0.spec, in.lane0.spec}, .backward_workspace = partials_bytes(6)};
}

}  // namespace fairway
