// Negative control: an executor whose causal mask is off by one. Each row of attention takes one key more than it may, that of
// the next token: y' = y·e^(l − l') + v_{t+1}·e^(s − l') with s the score of the next key and l' = log(e^l + e^s).
#pragma once

#include "autograd/host_executor.h"

namespace fairway {

class BrokenMaskExecutor final : public HostExecutor {
 public:
  explicit BrokenMaskExecutor(Executor& honest)
      : HostExecutor(honest.queue()), honest_(&honest) {}  // one that works on host memory
  void run_call(const BoundCall& call) override;
  Backend backend() const override { return honest_->backend(); }

 private:
  Executor* honest_;
};

}  // namespace fairway
