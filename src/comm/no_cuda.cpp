// Stands in for cuda_staging.cpp and nccl.cpp in builds without CUDA: there are no tensors on a device.
#include "base/error.h"
#include "comm/device_staging.h"

namespace fairway {

struct DeviceStaging::Twins {};
DeviceStaging::DeviceStaging() = default;
DeviceStaging::~DeviceStaging() = default;

Tensor DeviceStaging::host_of(const Tensor& device) {
  FAIRWAY_ASSERT(device.device == Device::cpu, "a tensor on a device in a build without CUDA");
  return device;
}
Tensor DeviceStaging::bring(const Tensor& device, const Queue&) { return host_of(device); }
void DeviceStaging::put(const Tensor& device, const Queue&) { host_of(device); }

}  // namespace fairway
