// Pinned host memory that stands in for tensors on a device, where a library carries host memory only (cuda_staging.cpp, or
// no_cuda.cpp in builds without CUDA).
#pragma once

#include <memory>

#include "tensor/queue.h"

namespace fairway {

class DeviceStaging {
 public:
  DeviceStaging();
  ~DeviceStaging();
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;

  // The host twin of a device tensor: one for each address and size, kept for ever.
  Tensor host_of(const Tensor& device);
  Tensor bring(const Tensor& device, const Queue& queue);  // the twin, filled after all work in the queue; ready on return
  void put(const Tensor& device, const Queue& queue);      // from its twin, in the queue's order

 private:
  struct Twins;
  std::unique_ptr<Twins> twins_;
};

}  // namespace fairway
