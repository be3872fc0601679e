#include "ops/clip_coefficient.h"

namespace fairway {

OpPlan ClipCoefficient::plan(const In& in) const {
  require(in.totals.spec.dtype == DType::f64 && in.clip.spec.dtype == DType::f64 && in.clip.numel() == 2, name,
          "clip must be f64 (2)");
  return {};
}

}  // namespace fairway
