#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const ClipCoefficient& op, const Forward<ClipCoefficient>& f) {
  const Values<double> totals(f.in.totals);
  double* clip = f.in.clip.as<double>();
  const double norm = std::sqrt(sum(f.in.totals.numel(), [&](int64_t i) { return totals[i]; }));
  clip[0] = op.max_norm > 0 ? std::min(1.0, op.max_norm / (norm + 1e-6)) : 1;
  clip[1] = norm;
}

}  // namespace fairway::ref
