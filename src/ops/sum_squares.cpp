#include "ops/sum_squares.h"

#include "ops/chunks.h"

namespace fairway {

OpPlan SumSquares::plan(const In& in) const {
  require(in.totals.spec.dtype == DType::f64 && slot >= 0 && slot < in.totals.numel(), name,
          "slot must be inside of the f64 totals");
  return {.forward_workspace = partials_bytes(1)};
}

}  // namespace fairway
