// Runs a decoding program of one row over packed weights. The recorded calls become phases: matrix–vector products and
// attention are divided among the threads, which walk all phases of a token together and meet at a spinning barrier; the small
// ops between them run on the first thread through the CPU backend. Rows belong to one thread each, so the bits do not depend
// on how many there are. Of the head only the logits are made, neither the loss nor the log-sum-exp.
#pragma once

#include <exception>

#include "autograd/host_executor.h"
#include "generate/packed_weights.h"
#include "generate/spin_barrier.h"

namespace fairway {

class PackedExecutor final : public Executor {
 public:
  PackedExecutor(const PackedWeights& weights, Queue& queue);  // both must outlive it
  ~PackedExecutor() override;

  Backend backend() const override { return Backend::cpu; }
  std::unique_ptr<Session> open(Recording recording, Arena* activations) override;
  void run_call(const BoundCall& call) override { floats_->run_call(call); }  // on host memory: nothing of it is packed

 private:
  struct Phase;
  struct Phases;
  class Compiler;
  class PackedSession;
  void walk_together(const Phases& phases);
  void walk(const Phases& phases, int rank);
  void keep_error();

  const PackedWeights* weights_;
  Queue alone_{1};
  std::unique_ptr<Executor> floats_;  // on one thread
  SpinBarrier barrier_;
  std::vector<cpu::DigitVector> digits_;  // one for each thread
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  std::atomic_flag telling_;
};

}  // namespace fairway
