// Ways between host and device memory. Staging: one call on host memory, carried to the device and back: for comparisons with
// ref and for tests. Float only.
#pragma once

#include "autograd/executor.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

// Pinned memory that small copies to the device pass through, so that the host neither waits for them nor for what runs before
// them. A slot is used again after a full round, which begins with a wait.
class PinnedRing {
 public:
  explicit PinnedRing(size_t bytes);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;
  void send(const std::byte* from, std::byte* to, size_t bytes, Context& context);

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, used_ = 0;
};

class Staging {
 public:
  void run(const BoundCall& host, Executor& device, Context& context);

 private:
  Tensor carry(const Tensor& host, Context& context);
  Buffer buffer_;
  size_t used_ = 0;
};

}  // namespace fairway::cuda
