#include "ops/qkv_project.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan QkvProject::plan(const In& in) const {
  const int64_t rows = in.x.rows(), width = in.x.cols();
  require_matrix(in.weight_q, width, name, "weight_q");
  require_matrix(in.weight_k, width, name, "weight_k");
  require_matrix(in.weight_v, width, name, "weight_v");
  const int64_t q = in.weight_q.dim(0), k = in.weight_k.dim(0), v = in.weight_v.dim(0);
  return {.out = {like(in.x, {rows, q}), like(in.x, {rows, k}), like(in.x, {rows, v})},
          .flops = product_flops(rows, q + k + v, width)};
}

}  // namespace fairway
