// Stands in for device.cu in builds without CUDA.
#include "ops/cuda/device.h"

namespace fairway::cuda {

double peak_bytes() { return 0; }
bool in_build() { return false; }
std::vector<DeviceInfo> devices() { return {}; }
void use_device(int) {}

}  // namespace fairway::cuda
