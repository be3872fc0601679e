#include "ops/cuda/device.h"

#include <cuda_runtime.h>

namespace fairway::cuda {

bool in_build() { return true; }

std::vector<DeviceInfo> devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};  // no driver here: the same program runs on the CPU
  std::vector<DeviceInfo> out;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    out.push_back({properties.name, properties.totalGlobalMem, properties.major, properties.minor});
  }
  return out;
}

double peak_bytes() {
  int device = 0, kilohertz = 0, bits = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device) != cudaSuccess)
    return 0;
  return 2e3 * kilohertz * bits / 8;  // two transfers a cycle
}

void use_device(int local_rank) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) cudaSetDevice(local_rank % count);
}

}  // namespace fairway::cuda
