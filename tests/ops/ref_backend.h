#pragma once

#include "ops/op_run.h"
#include "ops/ref/ref.h"

namespace fairway::ops_test {

template <class Op>
BackendUnderTest<Op> ref_backend() {
  if constexpr (Differentiable<Op>)
    return {"ref", &ref::forward, &ref::backward};
  else
    return {"ref", &ref::forward, nullptr};
}

}  // namespace fairway::ops_test
