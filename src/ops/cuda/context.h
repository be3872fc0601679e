// The queue that the kernels work with: a stream, cuBLASLt, and scratch memory on the device.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <source_location>
#include <vector>

#include "ops/cuda/device.h"
#include "ops/op.h"
#include "tensor/cuda_queue.h"

namespace fairway::cuda {

// WorkError naming the call when a CUDA function fails.
void check(cudaError_t status, const char* what, std::source_location where = std::source_location::current());
inline void check_launch(const char* kernel, std::source_location where = std::source_location::current()) {
  check(cudaGetLastError(), kernel, where);
}

// Device memory with one owner.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class Gemms;       // gemm.h
class FusedHeads;  // attention_cudnn.h

class Context final : public StreamQueue {
 public:
  explicit Context(ThreadPool& pool);
  ~Context() override;
  int processors() const { return processors_; }
  KernelPath path() const { return path_; }
  Gemms& gemms() { return *gemms_; }
  FusedHeads& fused_heads() { return *fused_heads_; }
  // Whether the bits of a row must not depend on how many rows there are (Program::rows_alike): kernels that are chosen by
  // their number, or by a library, are then those of any number.
  bool rows_alike() const { return rows_alike_; }
  void keep_rows_alike(bool on);
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  // Memory of the running op, all of it free again when the op returns: calls on one stream follow each other. Chunks are kept
  // for ever, since captured graphs hold their addresses.
  std::byte* device_scratch(size_t bytes);
  void release_scratch() { used_ = 0; }

 private:
  int processors_ = 0;
  KernelPath path_ = KernelPath::generic;
  bool rows_alike_ = false;
  std::vector<Buffer> chunks_;
  size_t used_ = 0;
  std::unique_ptr<Gemms> gemms_;
  std::unique_ptr<FusedHeads> fused_heads_;
};

inline Context& context_of(Queue& queue) {
  FAIRWAY_ASSERT(queue.device() == Device::cuda, "an op of the CUDA backend was given a queue of the CPU");
  return static_cast<Context&>(queue);
}

// Scratch of one op call: taken piece by piece, given back at its end.
class Scratch {
 public:
  explicit Scratch(Queue* queue) : context_(&context_of(*queue)) {}
  ~Scratch() { context_->release_scratch(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(context_->device_scratch(static_cast<size_t>(count) * sizeof(T)));
  }
  Context& context() { return *context_; }
  cudaStream_t stream() const { return context_->stream(); }

 private:
  Context* context_;
};

}  // namespace fairway::cuda
