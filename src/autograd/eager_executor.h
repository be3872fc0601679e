// Walks calls one by one. `Ops` gives the backend's forward and backward for every op of ops.def.
#pragma once

#include "autograd/executor.h"

namespace fairway {

template <class Ops>
class EagerExecutor : public Executor {
 public:
  explicit EagerExecutor(Queue& queue) : queue_(&queue) {}
  Backend backend() const override { return Ops::backend; }

  void run_call(const BoundCall& bound) override {
    std::visit([&](const auto& op) { run_op(op, bound); }, bound.call->op);
  }

 private:
  void run_op(const std::monostate&, const BoundCall&) {}

  template <class Op>
  void run_op(const Op& op, const BoundCall& bound) {
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

}  // namespace fairway
