#include "ops/low_rank_add.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan LowRankAdd::plan(const In& in) const {
  const int64_t rows = in.x.rows(), inner = in.x.cols();
  require(in.a.spec.shape.rank == 3 && in.a.dim(2) == inner, name,
          "a must be (G, r, " + std::to_string(inner) + ") but is " + in.a.spec.shape.text());
  const int64_t documents = in.a.dim(0), rank = in.a.dim(1);
  require(in.b.spec.shape.rank == 3 && in.b.dim(0) == documents && in.b.dim(2) == rank, name,
          "b must be (" + std::to_string(documents) + ", N, " + std::to_string(rank) + ") but is " + in.b.spec.shape.text());
  const int64_t width = in.b.dim(1);
  require(documents > 0 && rows % documents == 0, name,
          std::to_string(rows) + " rows are not as many for each of " + std::to_string(documents) + " documents");
  if (in.base)
    require(in.base.rows() == rows && in.base.cols() == width, name,
            "base must be (G·T, N) but is " + in.base.spec.shape.text());
  if (in.gain) require_numel(in.gain, width, name, "gain");
  return {
      .out = {like(in.x, {rows, width})},
      .saved = {like(in.x, {rows, rank})},
      .backward_workspace = static_cast<size_t>(rows / documents * rank) * sizeof(double) + bytes_of(in.x, 2 * width * rank),
      .flops = product_flops(rows, rank, inner + width)};
}

}  // namespace fairway
