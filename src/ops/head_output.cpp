#include "ops/head_output.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan HeadOutput::plan(const In& in) const {
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0 && in.y.cols() % heads == 0, name,
          "y must hold whole heads, and kv_heads must divide heads");
  if (in.v)
    require(in.y.cols() / heads * kv_heads == in.v.cols() && in.y.rows() == in.v.rows(), name,
            "y and v must have the same rows and head size");
  const Spec each_head = like(in.y, {in.y.rows(), heads});
  if (in.logit) require(in.logit.spec.shape == each_head.shape, name, "logit must be (M, H)");
  return {.out = {in.y.spec}, .saved = {each_head}};
}

}  // namespace fairway
