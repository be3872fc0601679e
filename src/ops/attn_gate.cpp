#include "ops/attn_gate.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan AttnGate::plan(const In& in) const {
  require(heads > 0 && in.y.cols() % heads == 0 && in.a.rows() == in.y.rows(), name,
          "a and y must have the same rows, y whole heads");
  require(in.gate.spec.shape.rank == 2 && in.gate.dim(0) == heads && in.gate.dim(1) <= in.a.cols(), name,
          "gate must be (H, W) with W within the rows of a");
  return {
      .out = {in.y.spec}, .saved = {like(in.y, {in.y.rows(), heads})}, .backward_workspace = partials_bytes(in.gate.numel())};
}

}  // namespace fairway
