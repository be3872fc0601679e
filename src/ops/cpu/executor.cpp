#include "ops/cpu/executor.h"
#include "autograd/eager_executor.h"
#include "ops/cpu/cpu.h"

namespace fairway {
namespace {

struct CpuOps {
  static constexpr Backend backend = Backend::cpu;
  template <class Op>
  static void forward(const Op& op, const Forward<Op>& call) {
    cpu::forward(op, call);
  }
  template <class Op>
  static void backward(const Op& op, const Backward<Op>& call) {
    cpu::backward(op, call);
  }
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(Queue& queue) { return std::make_unique<EagerExecutor<CpuOps>>(queue); }

}  // namespace fairway
