#include "ops/cuda/cuda.h"
#include "ops/cuda/flat.cuh"

namespace fairway::cuda {
namespace {

__global__ void clip_coefficient(int64_t count, double max_norm, const double* totals, double* clip) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += totals[i];
  const double norm = sqrt(total);
  clip[0] = max_norm > 0 ? fmin(1.0, max_norm / (norm + 1e-6)) : 1.0;
  clip[1] = norm;
}

}  // namespace

void forward(const ClipCoefficient& op, const Forward<ClipCoefficient>& f) {
  Scratch scratch(f.queue);
  clip_coefficient<<<1, 1, 0, scratch.stream()>>>(f.in.totals.numel(), op.max_norm, pointer<double>(f.in.totals),
                                                  pointer<double>(f.in.clip));
  check_launch("clip_coefficient");
}

}  // namespace fairway::cuda
