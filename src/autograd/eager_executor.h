// Runs calls by the functions of a backend on tensors where that backend sees them. `Ops` gives its forward and backward for
// every op of ops.def.
#pragma once

#include "autograd/host_executor.h"

namespace fairway {

template <class Ops>
class CallRunner {
 public:
  explicit CallRunner(Queue& queue) : queue_(&queue) {}
  void operator()(const BoundCall& bound) const {
    std::visit([&](const auto& op) { run_op(op, bound); }, bound.call->op);
  }

 private:
  void run_op(const std::monostate&, const BoundCall&) const {}

  template <class Op>
  void run_op(const Op& op, const BoundCall& bound) const {
    const auto in = to_args<typename Op::In>(bound.in);
    const auto out = to_args<typename Op::Out>(bound.out);
    const auto saved = to_args<typename Op::Saved>(bound.saved);
    if (!bound.call->backward) {
      Ops::forward(op, Forward<Op>{in, out, saved, bound.workspace, queue_});
    } else if constexpr (Differentiable<Op>) {
      Ops::backward(op, Backward<Op>{in, out, saved, to_args<typename Op::Out>(bound.dout), to_args<typename Op::In>(bound.din),
                                     bound.workspace, queue_});
    }
  }

  Queue* queue_;
};

template <class Ops>
class EagerExecutor final : public HostExecutor {
 public:
  explicit EagerExecutor(Queue& queue) : HostExecutor(queue), run_(queue) {}
  Backend backend() const override { return Ops::backend; }
  void run_call(const BoundCall& bound) override { run_(bound); }

 private:
  CallRunner<Ops> run_;
};

}  // namespace fairway
