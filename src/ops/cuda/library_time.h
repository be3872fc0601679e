// What NVIDIA's own libraries take for an op's matrix work, on the same operands: cuBLASLt's plain products (no activation, no
// residual), cuDNN's deterministic attention. For the tables of `fairway bench step` and
// `train --profile`.
#pragma once

#include <span>

#include "ops/all_ops.h"

namespace fairway::cuda {

struct CallTensors {
  std::span<const Tensor> in, out, saved, dout, din;  // on the device
};
// Seconds; 0 where they have nothing for it. Overwrites the call's results.
double library_seconds(Queue& queue, const AnyOp& op, bool backward, const CallTensors& tensors);

}  // namespace fairway::cuda
