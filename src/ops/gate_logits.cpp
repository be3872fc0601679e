#include "ops/gate_logits.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan GateLogits::plan(const In& in) const {
  require(in.gate.spec.shape.rank == 2 && in.gate.dim(1) <= in.a.cols(), name,
          "gate must be (H, W) with W within the rows of a");
  return {.out = {like(in.a, {in.a.rows(), in.gate.dim(0)})}, .backward_workspace = partials_bytes(in.gate.numel())};
}

}  // namespace fairway
