// A queue whose work goes to a CUDA stream.
#pragma once

#include <cuda_runtime.h>

#include "base/error.h"
#include "tensor/queue.h"

namespace fairway::cuda {

class StreamQueue : public Queue {
 public:
  explicit StreamQueue(ThreadPool& pool) : Queue(pool) {}
  Device device() const override { return Device::cuda; }
  cudaStream_t stream() const { return stream_; }

 protected:
  cudaStream_t stream_ = nullptr;
};

inline cudaStream_t stream_of(const Queue& queue) {
  FAIRWAY_ASSERT(queue.device() == Device::cuda, "a stream was asked of a queue on the CPU");
  return static_cast<const StreamQueue&>(queue).stream();
}

}  // namespace fairway::cuda
