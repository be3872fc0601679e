// What updates of flat tensors share: a blend of two, and the numbers that steps change.
#pragma once

#include "ops/step_scalars.h"
#include "tensor/queue.h"
#include "tensor/tensor.h"

namespace fairway::cpu {

// target = keep·target + share·source, each f32 or bf16; keep == 0 does not read the target. `round`: to floats that bf16 has.
void blend(Queue& queue, double keep, double share, const Tensor& target, const Tensor& source, bool round = false);

inline double scalar(const Tensor& scalars, StepScalar slot) { return scalars.as<double>()[static_cast<size_t>(slot)]; }
inline double factor_or_one(const Tensor& factor) { return factor ? factor.as<double>()[0] : 1.0; }

}  // namespace fairway::cpu
