#include "ops/gptq_block.h"

#include "ops/plan_rules.h"

namespace fairway {

OpPlan GptqBlock::plan(const In& in) const {
  require(in.work.spec.shape.rank == 2, name, "work must be (R, C) but is " + in.work.spec.shape.text());
  const int64_t rows = in.work.dim(0), columns = in.work.dim(1);
  require(begin >= 0 && begin < end && end <= columns, name,
          "the block [" + std::to_string(begin) + ", " + std::to_string(end) + ") must lie in " + in.work.spec.shape.text());
  require(levels > 0 && levels <= 127, name, "levels must be 1 to 127");
  require_square(in.factor, columns, name, "factor");
  require(in.scale.numel() == rows, name, "scale must have one element per row");
  require(in.error.spec.shape.rank == 2 && in.error.dim(0) == rows && in.error.dim(1) >= end - begin, name,
          "error must be (R, at least the block) but is " + in.error.spec.shape.text());
  require_doubles(in.loss, rows, name, "loss");
  require(!trellis || (levels >= 3 && levels <= kTrellisLevel), name,
          "levels of a trellis must be 3 to " + std::to_string(kTrellisLevel));
  OpPlan plan;
  if (in.outputs) {
    const int64_t side = in.outputs.dim(0);
    require_square(in.outputs, side, name, "outputs");
    require(side > 0 && rows % side == 0, name,
            "outputs are of weights of " + std::to_string(side) + " rows, but there are " + std::to_string(rows));
    plan.forward_workspace = static_cast<size_t>(rows / side) * column_bytes(side);
  }
  const auto r = static_cast<double>(rows), block = static_cast<double>(end - begin);
  plan.flops = r * block * (block + 2 * static_cast<double>(columns - end));
  return plan;
}

}  // namespace fairway
