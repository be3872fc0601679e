#include "ops/fill.h"

namespace fairway {

OpPlan Fill::plan(const In&) const { return {}; }

}  // namespace fairway
