// Runs single plain ops on a backend, for work that is decided step by step and so cannot be a recorded program.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "backends/backends.h"
#include "quant/device_gptq.h"

namespace fairway {

// Threads of the CPU, and a device beside them where the executor has one: it takes over what it is made for.
class OpSite {
 public:
  OpSite(Queue& queue) : pool_(&queue.pool()) {}  // both are meant to be named where a site is asked for
  OpSite(Executor& executor) : pool_(&executor.queue().pool()), device_(executor.on_device() ? &executor : nullptr) {}
  OpSite(Queue& queue, Executor& device) : pool_(&queue.pool()), device_(&device) {}
  ThreadPool& pool() const { return *pool_; }
  Executor* device() const { return device_; }  // null: there is none

 private:
  ThreadPool* pool_;
  Executor* device_ = nullptr;
};

class OpRunner {
 public:
  explicit OpRunner(OpSite site, Backend backend = Backend::cpu)
      : site_(site), queue_(std::make_unique<Queue>(site.pool())), executor_(make_executor(backend, *queue_)) {}

  template <class Op>
  void run(const Op& op, std::initializer_list<Tensor> in) {
    const OpPlan plan = op.plan(to_args<typename Op::In>(std::span(in.begin(), in.size())));
    const Call call{.op = op};
    executor_->run_call({&call, in, {}, {}, {}, {}, workspace(plan.forward_workspace)});
  }
  ThreadPool& pool() { return site_.pool(); }
  // Where there is a device GPTQ runs there; null on the CPU.
  DeviceGptq* device_gptq() {
    if (site_.device() == nullptr) return nullptr;
    if (!device_gptq_) device_gptq_ = std::make_unique<DeviceGptq>(*site_.device());
    return device_gptq_.get();
  }

 private:
  Tensor workspace(size_t bytes) {
    if (workspace_.size() * sizeof(double) < bytes) workspace_.resize((bytes + sizeof(double) - 1) / sizeof(double));
    return make_view(workspace_.data(), {{static_cast<int64_t>(bytes)}, DType::u8});
  }

  OpSite site_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Executor> executor_;
  std::vector<double> workspace_;
  std::unique_ptr<DeviceGptq> device_gptq_;
};

}  // namespace fairway
