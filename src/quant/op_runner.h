// Runs single plain ops on a backend, for work that is decided step by step and so cannot be a recorded program.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "quant/device_gptq.h"

namespace fairway {

class OpRunner {
 public:
  explicit OpRunner(Queue& queue, Backend backend = Backend::cpu) : queue_(&queue), executor_(make_executor(backend, queue)) {}

  template <class Op>
  void run(const Op& op, std::initializer_list<Tensor> in) {
    const OpPlan plan = op.plan(to_args<typename Op::In>(std::span(in.begin(), in.size())));
    const Call call{.op = op};
    executor_->run_call({&call, in, {}, {}, {}, {}, workspace(plan.forward_workspace)});
  }
  ThreadPool& pool() { return queue_->pool(); }
  // Where the queue works with a device, GPTQ runs there; null on the CPU.
  DeviceGptq* device_gptq() {
    Executor* device = queue_->device_executor();
    if (device == nullptr) return nullptr;
    if (!device_gptq_) device_gptq_ = std::make_unique<DeviceGptq>(*device);
    return device_gptq_.get();
  }

 private:
  Tensor workspace(size_t bytes) {
    if (workspace_.size() * sizeof(double) < bytes) workspace_.resize((bytes + sizeof(double) - 1) / sizeof(double));
    return make_view(workspace_.data(), {{static_cast<int64_t>(bytes)}, DType::u8});
  }

  Queue* queue_;
  std::unique_ptr<Executor> executor_;
  std::vector<double> workspace_;
  std::unique_ptr<DeviceGptq> device_gptq_;
};

}  // namespace fairway
