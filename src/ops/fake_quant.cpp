#include "ops/fake_quant.h"

namespace fairway {

OpPlan FakeQuant::plan(const In& in) const {
  require(levels > 0, name, "levels must be positive");
  require(deviations >= 0 && scale_floor >= 0, name, "deviations and scale_floor must not be negative");
  return {.out = {in.weight.spec}};
}

}  // namespace fairway
