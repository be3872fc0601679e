#include "ops/cpu/blend.h"

#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void blend(Queue& queue, double keep, double share, const Tensor& target, const Tensor& source) {
  const UpdateKernels& update = kernels().update;
  float* to = target.as<float>();
  const float* from = source.as<float>();
  for_elements(queue, target.numel(),
               [&](RowRange range) { update.blend(static_cast<float>(keep), static_cast<float>(share), range, to, from); });
}

}  // namespace fairway::cpu
