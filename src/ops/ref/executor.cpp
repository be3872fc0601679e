#include "ops/ref/executor.h"
#include "autograd/eager_executor.h"
#include "ops/ref/ref.h"

namespace fairway {
namespace {

struct RefOps {
  static constexpr Backend backend = Backend::ref;
  template <class Op>
  static void forward(const Op& op, const Forward<Op>& call) {
    ref::forward(op, call);
  }
  template <class Op>
  static void backward(const Op& op, const Backward<Op>& call) {
    ref::backward(op, call);
  }
};

}  // namespace

std::unique_ptr<Executor> make_ref_executor(Queue& queue) { return std::make_unique<EagerExecutor<RefOps>>(queue); }

}  // namespace fairway
