#include "ops/mix_norm.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan MixNorm::plan(const In& in) const {
  require_same(in.x, in.x0, name, "x and x0");
  require_numel(in.mix, 2 * in.x.cols(), name, "mix");
  return {.out = {in.x.spec, in.x.spec},
          .saved = {like(in.x, {in.x.rows()})},
          .backward_workspace = partials_bytes(2 * in.x.cols())};
}

}  // namespace fairway
