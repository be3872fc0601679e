// The CUDA devices of this machine. Without CUDA in the build the list is empty (no_cuda.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fairway::cuda {

struct DeviceInfo {
  std::string name;
  size_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability; our kernels are built for 9.0a
};

// Dense products of an H100 or H200 SXM, by the datasheet: in bf16, and in float without TF32.
inline constexpr double kPeakFlops = 989.4e12, kPeakFloatFlops = 66.9e12;

double peak_bytes();  // of the current device's memory a second, by its clock and width; 0 if not told

bool in_build();
std::vector<DeviceInfo> devices();  // empty when there is no driver or no device
void use_device(int local_rank);    // this thread works on that rank's device from now on; ranks beyond the last one share

}  // namespace fairway::cuda
