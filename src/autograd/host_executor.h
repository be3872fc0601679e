// Sessions on the host's own memory, call by call: what the executors of the CPU have in common.
#pragma once

#include "autograd/executor.h"

namespace fairway {

class HostExecutor : public Executor {
 public:
  using Executor::Executor;
  std::unique_ptr<Session> open(Recording recording, Arena* activations = nullptr) override;
};

class HostSession : public Session {
 public:
  HostSession(Recording recording, Arena* activations, Executor& executor);

  void run() override;
  using Session::run;
  void run_told(const std::function<void(size_t call)>& after) override;
  void run_timed(std::vector<double>& seconds) override;
  Tensor fetch(int32_t value) override { return tensor(value); }
  Tensor fetched(int32_t value) const override { return tensor(value); }
  void deliver(int32_t value, Delivery& to) override;
  const std::vector<BoundCall>& calls() override { return calls_; }
  void clear_state() override;

 private:
  Tensor tensor(int32_t value) const;
  void place_apart();

  Executor* executor_;
  std::unique_ptr<Arena> own_;  // where no memory is shared
  Arena* planned_;
  std::unique_ptr<Arena> apart_;
  std::vector<Tensor> states_;  // by value; present where it is apart
  std::vector<BoundCall> calls_;
};

}  // namespace fairway
