// Where work is enqueued: a team of CPU threads here, a stream on a device. Ops receive it and never own one.
#pragma once

#include <cstddef>
#include <memory>

#include "base/thread_pool.h"

namespace fairway {

class Executor;  // autograd/executor.h
namespace cuda {
class Context;  // ops/cuda/context.h
}

class Queue {
 public:
  explicit Queue(int threads) : pool_(threads) {}
  ThreadPool& pool() { return pool_; }

  // Packing buffers of the kernels, whose size depends on the team and not on the op. Grown when an op first asks for more:
  // the first step allocates, later ones do not. Contents last until the next call.
  std::byte* scratch(size_t bytes) {
    if (bytes > scratch_bytes_) {
      scratch_.reset(new std::byte[bytes]);
      scratch_bytes_ = bytes;
    }
    return scratch_.get();
  }

  // What a device backend works with (its stream, handles, memory); null on the CPU. Owned by that backend's executor.
  cuda::Context* device_context() const { return device_context_; }
  void set_device_context(cuda::Context* context) { device_context_ = context; }
  // That executor itself, for work that is not part of a program; null on the CPU and once it is gone.
  Executor* device_executor() const { return device_executor_; }
  void set_device_executor(Executor* executor) { device_executor_ = executor; }

 private:
  ThreadPool pool_;
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
  cuda::Context* device_context_ = nullptr;
  Executor* device_executor_ = nullptr;
};

}  // namespace fairway
