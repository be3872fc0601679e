// The cuda backend as the op harness sees it: host tensors in and out, through the executor's staging.
#pragma once

#include "autograd/executor.h"
#include "backends/backends.h"
#include "ops/cuda/device.h"
#include "ops/op_run.h"

namespace fairway::ops_test {

inline bool has_device() { return !cuda::devices().empty(); }

inline Executor& device_executor() {
  static Queue queue(1);
  static Executor* executor = make_executor(Backend::cuda_f32, queue).release();  // the driver may be gone at exit
  return *executor;
}

template <class Args>
std::vector<Tensor> list_of(const Args& args) {
  std::vector<Tensor> out;
  if constexpr (tensor_count < Args >> 0) {
    const auto* tensors = reinterpret_cast<const Tensor*>(&args);
    out.assign(tensors, tensors + tensor_count<Args>);
  }
  return out;
}

template <class Op>
void run_forward(const Op& op, const Forward<Op>& f) {
  const Call call{.op = op};
  device_executor().run_call({&call, list_of(f.in), list_of(f.out), list_of(f.saved), {}, {}, f.workspace});
}

template <class Op>
void run_backward(const Op& op, const Backward<Op>& b) {
  const Call call{.op = op, .backward = true};
  device_executor().run_call(
      {&call, list_of(b.in), list_of(b.out), list_of(b.saved), list_of(b.dout), list_of(b.din), b.workspace});
}

template <class Op>
BackendUnderTest<Op> cuda_backend() {
  if constexpr (Differentiable<Op>)
    return {"cuda", &run_forward<Op>, &run_backward<Op>};
  else
    return {"cuda", &run_forward<Op>, nullptr};
}

}  // namespace fairway::ops_test
