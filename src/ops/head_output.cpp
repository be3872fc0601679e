#include "ops/head_output.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan HeadOutput::plan(const In& in) const {
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0 && in.y.cols() % heads == 0, name,
          "y must hold whole heads, and kv_heads must divide heads");
  if (in.v)
    require(in.y.cols() / heads * kv_heads == in.v.cols() && in.y.rows() == in.v.rows(), name,
            "y and v must have the same rows and head size");
  require(static_cast<bool>(in.a) == static_cast<bool>(in.gate), name, "a and gate come together");
  if (in.gate) {
    require(in.a.rows() == in.y.rows(), name, "a and y must have the same rows");
    require(in.gate.spec.shape.rank == 2 && in.gate.dim(0) == heads && in.gate.dim(1) <= in.a.cols(), name,
            "gate must be (H, W) with W within the rows of a");
  }
  const Spec each_head = like(in.y, {in.y.rows(), heads});
  return {
      .out = {in.y.spec}, .saved = {each_head, each_head}, .backward_workspace = in.gate ? partials_bytes(in.gate.numel()) : 0};
}

}  // namespace fairway
