// Declarations of the ref backend, one pair for each entry of ops.def.
#pragma once

#include "ops/all_ops.h"

namespace fairway::ref {

#define FAIRWAY_PLAIN_OP(Op) void forward(const Op&, const Forward<Op>&);
#define FAIRWAY_OP(Op) \
  FAIRWAY_PLAIN_OP(Op) \
  void backward(const Op&, const Backward<Op>&);
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

}  // namespace fairway::ref
