// Declarations of the cuda backend, one pair for each entry of ops.def. Tensors are on the device, bf16 or float: activations
// of one call share a type; vectors, row statistics and gradients of parameters are float. Everything is enqueued on the stream
// of the call's Queue; nothing waits.
#pragma once

#include "ops/all_ops.h"

namespace fairway::cuda {

#define FAIRWAY_PLAIN_OP(Op) void forward(const Op&, const Forward<Op>&);
#define FAIRWAY_OP(Op) \
  FAIRWAY_PLAIN_OP(Op) \
  void backward(const Op&, const Backward<Op>&);
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

}  // namespace fairway::cuda
