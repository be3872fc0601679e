#pragma once

#include "ops/cpu/cpu.h"
#include "ops/op_run.h"

namespace fairway::ops_test {

template <class Op>
BackendUnderTest<Op> cpu_backend() {
  if constexpr (Differentiable<Op>)
    return {"cpu", &cpu::forward, &cpu::backward};
  else
    return {"cpu", &cpu::forward, nullptr};
}

}  // namespace fairway::ops_test
