// Beside a device the host computes only what quantizing asks of it (quant/op_runner.h).
#include "ops/cpu/executor.h"
#include "autograd/eager_executor.h"
#include "base/error.h"
#include "ops/cpu/cpu.h"

namespace fairway {
namespace {

template <class Op>
concept OfQuantizing =
    std::is_same_v<Op, HessianAccumulate> || std::is_same_v<Op, CholeskyInverse> || std::is_same_v<Op, GptqBlock>;

struct CpuOps {
  static constexpr Backend backend = Backend::cpu;
  template <class Op>
  static void forward(const Op& op, const Forward<Op>& call) {
    if constexpr (OfQuantizing<Op>)
      cpu::forward(op, call);
    else
      refuse();
  }
  template <class Op>
  static void backward(const Op&, const Backward<Op>&) {
    refuse();
  }
  [[noreturn]] static void refuse() { throw InputError("--backend cpu: not part of the sources of a record on a device"); }
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(Queue& queue) { return std::make_unique<EagerExecutor<CpuOps>>(queue); }

}  // namespace fairway
