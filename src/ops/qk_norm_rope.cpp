#include "ops/qk_norm_rope.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan QkNormRope::plan(const In& in) const {
  const int64_t rows = in.q.rows();
  require(head_dim > 0 && in.q.cols() % head_dim == 0 && in.k.cols() % head_dim == 0, name, "q and k must hold whole heads");
  require(in.k.rows() == rows, name, "q and k must have the same rows");
  const int64_t heads = in.q.cols() / head_dim;
  require_numel(in.gain, heads, name, "gain");
  require(in.rope.spec.shape.rank == 2 && in.rope.dim(0) >= row_length && row_length > 0 && rows % row_length == 0, name,
          "rope must cover every position of a sequence");
  require(in.rope.dim(1) % 2 == 0 && in.rope.dim(1) <= head_dim, name, "rotated dims must be even and within a head");
  return {.out = {in.q.spec, in.k.spec},
          .saved = {like(in.q, {rows, heads}), like(in.q, {rows, in.k.cols() / head_dim})},
          .backward_workspace = partials_bytes(heads)};
}

}  // namespace fairway
