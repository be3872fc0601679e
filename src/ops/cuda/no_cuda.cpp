// Stands in for device.cu and product_time.cu in builds without CUDA.
#include "base/error.h"
#include "ops/cuda/device.h"
#include "ops/cuda/executor.h"
#include "ops/cuda/library_time.h"
#include "ops/cuda/product_time.h"

namespace fairway::cuda {

Built built() { return {}; }
PeakFlops peak_flops() { return peak_of_hopper(); }
double peak_bytes() { return 0; }
size_t used_bytes() { return 0; }
bool in_build() { return false; }
DeviceFacts device_facts() { return {}; }
void use_device(int) {}
double library_seconds(Queue&, const AnyOp&, bool, const CallTensors&) { return 0; }
TimedProduct time_product(const ProductRequest&, double, int) { throw WorkError("this program was built without CUDA"); }

}  // namespace fairway::cuda

namespace fairway {

std::unique_ptr<Executor> make_cuda_executor(Backend, Queue&) {
  FAIRWAY_ASSERT(false, "parse_backend refuses cuda in builds without it");
}

}  // namespace fairway
