// Matrices of the banks that set out to their owners while the backward pass still runs, each as soon as the last call that
// adds to its gradient is done; a looped layer's after the backward of its first pass. They travel unclipped, since the norm is
// not known yet; the owner multiplies what came from each rank by that rank's coefficient, which gives the bits that scaling
// before sending would give. For processes with one emulated rank each: a sum of several could not be scaled afterwards.
#pragma once

#include <map>
#include <vector>

#include "autograd/executor.h"
#include "comm/communicator.h"
#include "optim/gradient_layout.h"

namespace fairway {

class EarlySlices {
 public:
  struct Bank {
    const ShardedBank* place = nullptr;
    Tensor received;  // n pieces of a shard each
  };
  EarlySlices(std::vector<Bank> banks, Executor& executor, Communicator& comm);

  // Runs a program that adds to the gradients; matrices set out on the way.
  void run(Session& passes);
  void start_rest();           // those that have not set out, in order
  void wait_for(size_t bank);  // until its matrices have come

  // For each call the matrices whose gradients are final after it, counted over all banks in order.
  std::vector<std::vector<size_t>> finished_by(const Program& program) const;

 private:
  struct Slice {
    size_t bank;
    int64_t matrix;
    Communicator::Request request = 0;
    bool started = false;
  };
  void start(Slice& slice);
  Tensor gradient_of(const Slice& slice) const;

  std::vector<Bank> banks_;
  Executor* executor_;
  Communicator* comm_;
  std::vector<Slice> slices_;
  std::map<const Session*, std::vector<std::vector<size_t>>> schedules_;
};

}  // namespace fairway
