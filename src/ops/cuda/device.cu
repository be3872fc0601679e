#include "ops/cuda/device.h"

#include <cuda_runtime.h>

#include <cstdlib>

namespace fairway::cuda {

#ifdef __CUDA_ARCH__
static_assert(__CUDA_ARCH__ >= 800, "kernels want bf16 and asynchronous copies: Ampere or later");
#endif

bool in_build() { return true; }

#ifndef FAIRWAY_CUDA_PTX  // told where there is some (cmake/FairwayCuda.cmake)
#define FAIRWAY_CUDA_PTX 0
#endif
Built built() {
  Built out{{__CUDA_ARCH_LIST__}, FAIRWAY_CUDA_PTX};  // nvcc's list: 800, 900
  for (int& of : out.code) of /= 10;
  return out;
}

DeviceFacts device_facts() {
  using Answer = DeviceFacts::Answer;
  DeviceFacts facts{.in_build = true, .built = built()};
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) {
    facts.visible_told = true;
    facts.visible = visible;
  }
  cudaDriverGetVersion(&facts.driver_version);
  cudaRuntimeGetVersion(&facts.runtime_version);
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  cudaGetLastError();  // an answer, not an error of work to come
  if (status == cudaErrorInsufficientDriver) {
    facts.answer = Answer::driver_insufficient;
  } else if (status != cudaSuccess && status != cudaErrorNoDevice) {
    facts.answer = Answer::failed;
    facts.failure = cudaGetErrorString(status);
  } else if (status == cudaSuccess && count > 0) {
    facts.answer = Answer::devices;
    facts.missing_library = missing_library();
  }
  for (int i = 0; i < count && facts.answer == Answer::devices; ++i) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    facts.devices.push_back({properties.name, properties.totalGlobalMem, properties.major, properties.minor, i});
  }
  return facts;
}

PeakFlops peak_flops() {
  int device = 0, major = 0, minor = 0, processors = 0, kilohertz = 0;
  if (devices().empty() || cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device) != cudaSuccess)
    return peak_of_hopper();
  return peak_flops(10 * major + minor, processors, 1e3 * kilohertz);
}

double peak_bytes() {
  int device = 0, kilohertz = 0, bits = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device) != cudaSuccess)
    return 0;
  return 2e3 * kilohertz * bits / 8;  // two transfers a cycle
}

size_t used_bytes() {
  size_t free = 0, all = 0;
  return cudaMemGetInfo(&free, &all) == cudaSuccess ? all - free : 0;
}

void use_device(int local_rank) {
  if (!devices().empty()) cudaSetDevice(devices()[static_cast<size_t>(local_rank) % devices().size()].index);
}

}  // namespace fairway::cuda
