// Where work is enqueued: a team of CPU threads, or a device's stream (tensor/cuda_queue.h) beside one. Ops receive it and
// never own one.
#pragma once

#include <cstddef>
#include <memory>

#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace fairway {

class Queue {
 public:
  explicit Queue(int threads) : own_(std::make_unique<ThreadPool>(threads)), pool_(own_.get()) {}
  explicit Queue(ThreadPool& shared) : pool_(&shared) {}
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  virtual Device device() const { return Device::cpu; }
  ThreadPool& pool() { return *pool_; }

  // Packing buffers of the kernels, whose size depends on the team and not on the op. Grown when an op first asks for more:
  // the first step allocates, later ones do not. Contents last until the next call.
  std::byte* scratch(size_t bytes) {
    if (bytes > scratch_bytes_) {
      scratch_.reset(new std::byte[bytes]);
      scratch_bytes_ = bytes;
    }
    return scratch_.get();
  }

 private:
  std::unique_ptr<ThreadPool> own_;
  ThreadPool* pool_;
  std::unique_ptr<std::byte[]> scratch_;
  size_t scratch_bytes_ = 0;
};

}  // namespace fairway
