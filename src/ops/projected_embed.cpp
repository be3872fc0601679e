#include "ops/projected_embed.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan ProjectedEmbed::plan(const In& in) const {
  require(in.tokens.spec.dtype == DType::i32, name, "tokens must be i32");
  require(in.table.spec.shape.rank == 2 && (index == Index::token || in.table.dim(0) >= 2), name,
          "table must be (R, d), R >= 2 for bigrams");
  require_matrix(in.proj, in.table.dim(1), name, "proj");
  require(in.scale.numel() == 1, name, "scale must be one number");
  const int64_t rows = in.tokens.numel(), width = in.table.dim(1), out = in.proj.dim(0);
  require(index == Index::token || (row_length > 0 && rows % row_length == 0), name, "rows must be whole sequences");
  return {.out = {like(in.proj, {rows, out})},
          .saved = {like(in.proj, {rows, width})},
          .backward_workspace = bytes_of(in.proj, out * width + rows * width),
          .flops = product_flops(rows, out, width)};
}

}  // namespace fairway
