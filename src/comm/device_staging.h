// Pinned host memory that stands in for tensors on a device, where a library carries host memory only (cuda_staging.cpp, or
// no_cuda.cpp in builds without CUDA).
#pragma once

#include <memory>

#include "tensor/tensor.h"

namespace fairway {

class DeviceStaging {
 public:
  DeviceStaging();
  ~DeviceStaging();
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;

  // The host twin of a device tensor: one for each address and size, kept for ever. `stream` is a cudaStream_t.
  Tensor host_of(const Tensor& device);
  Tensor bring(const Tensor& device, void* stream);  // the twin, filled after all work in the stream; ready on return
  void put(const Tensor& device, void* stream);      // from its twin, in the stream's order

 private:
  struct Twins;
  std::unique_ptr<Twins> twins_;
};

}  // namespace fairway
