// `bench ops` on a device times the device's own products; where there is none it does not time something else.
#include <gtest/gtest.h>

#include "base/error.h"
#include "bench/gemm_bench.h"
#include "ops/cuda/device.h"

namespace fairway::bench {
namespace {

TEST(DeviceProducts, AreTheDevicesAndChecked) {
  if (!cuda::in_build()) {
    EXPECT_THROW(bench_device_gemm(true, 0.001), WorkError);
  }
  if (cuda::devices().empty()) GTEST_SKIP() << "no CUDA device on this machine";
  for (const bool bf16 : {true, false}) {
    for (const GemmLine& line : bench_device_gemm(bf16, 0.001)) {
      EXPECT_GT(line.gflops, 0) << line.layout;
      EXPECT_LT(line.share, 1) << line.layout << ": faster than the device can be";
      EXPECT_LE(line.error, bf16 ? 1.0 / 256 : 1e-4) << line.layout;
    }
  }
}

}  // namespace
}  // namespace fairway::bench
