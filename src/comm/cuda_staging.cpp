#include <cuda_runtime.h>

#include <map>
#include <string>

#include "base/device_error.h"
#include "comm/device_staging.h"
#include "tensor/cuda_queue.h"

namespace fairway {
namespace {

void check_copy(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string(what) + " between ranks failed: " + cudaGetErrorString(status));
}

}  // namespace

struct DeviceStaging::Twins {
  std::map<std::pair<const std::byte*, size_t>, std::byte*> at;
  ~Twins() {
    for (const auto& [device, host] : at) cudaFreeHost(host);
  }
};

DeviceStaging::DeviceStaging() : twins_(std::make_unique<Twins>()) {}
DeviceStaging::~DeviceStaging() = default;

Tensor DeviceStaging::host_of(const Tensor& device) {
  std::byte*& place = twins_->at[{device.data, device.spec.bytes()}];
  if (place == nullptr) {
    void* made = nullptr;
    check_copy(cudaMallocHost(&made, device.spec.bytes()), "cudaMallocHost");
    place = static_cast<std::byte*>(made);
  }
  return make_view(place, device.spec);
}

Tensor DeviceStaging::bring(const Tensor& device, const Queue& queue) {
  const Tensor host = host_of(device);
  const cudaStream_t stream = cuda::stream_of(queue);
  check_copy(cudaMemcpyAsync(host.data, device.data, host.spec.bytes(), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check_copy(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return host;
}

void DeviceStaging::put(const Tensor& device, const Queue& queue) {
  const Tensor host = host_of(device);
  check_copy(cudaMemcpyAsync(device.data, host.data, host.spec.bytes(), cudaMemcpyHostToDevice, cuda::stream_of(queue)),
             "cudaMemcpyAsync");
}

}  // namespace fairway
