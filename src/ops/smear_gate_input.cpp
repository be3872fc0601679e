#include "ops/smear_gate_input.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan SmearGateInput::plan(const In& in) const {
  require_indices(in.tokens, in.e.rows(), name, "tokens");
  require(in.weight.numel() <= in.e.cols(), name, "weight must not be wider than the rows");
  require_numel(in.lambda, 1, name, "lambda");
  require(row_length > 0 && in.e.rows() % row_length == 0, name, "rows must be whole sequences");
  return {.out = {in.e.spec}, .backward_workspace = partials_bytes(in.weight.numel() + 1)};
}

}  // namespace fairway
