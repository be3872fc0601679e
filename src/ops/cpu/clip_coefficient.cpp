#include <cmath>

#include "ops/cpu/cpu.h"

namespace fairway::cpu {

void forward(const ClipCoefficient& op, const Forward<ClipCoefficient>& call) {
  const double* totals = call.in.totals.as<double>();
  double squares = 0;
  for (int64_t i = 0; i < call.in.totals.numel(); ++i) squares += totals[i];
  const double norm = std::sqrt(squares);
  double* clip = call.in.clip.as<double>();
  clip[0] = op.max_norm > 0 ? std::min(1.0, op.max_norm / (norm + 1e-6)) : 1.0;
  clip[1] = norm;
}

}  // namespace fairway::cpu
