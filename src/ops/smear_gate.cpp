#include "ops/smear_gate.h"

#include "ops/chunks.h"
#include "ops/plan_rules.h"

namespace fairway {

OpPlan SmearGate::plan(const In& in) const {
  require_numel(in.gate, in.u.cols(), name, "gate");
  require(row_length > 0 && in.u.rows() % row_length == 0, name, "rows must be whole sequences");
  return {.out = {in.u.spec}, .backward_workspace = partials_bytes(in.u.cols())};
}

}  // namespace fairway
