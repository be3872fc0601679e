#include "ops/xsa.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan Xsa::plan(const In& in) const {
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, name, "kv_heads must divide heads");
  require(in.y.cols() % heads == 0 && in.y.cols() / heads * kv_heads == in.v.cols() && in.y.rows() == in.v.rows(), name,
          "y and v must have the same rows and head size");
  return {.out = {in.y.spec}, .saved = {like(in.y, {in.y.rows(), heads})}};
}

}  // namespace fairway
