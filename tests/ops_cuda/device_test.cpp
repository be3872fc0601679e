// Tests that need a GPU; where there is none they skip and say so.
#include "ops/cuda/device.h"

#include <gtest/gtest.h>

namespace fairway {
namespace {

TEST(CudaDevice, ABuildWithoutCudaHasNoDevices) {
  if (cuda::in_build()) GTEST_SKIP() << "this build has CUDA";
  EXPECT_TRUE(cuda::devices().empty());
}

TEST(CudaDevice, IsAHopper) {
  const auto devices = cuda::devices();
  if (devices.empty()) GTEST_SKIP() << (cuda::in_build() ? "no CUDA device on this machine" : "this build has no CUDA");
  EXPECT_EQ(devices.front().major, 9) << devices.front().name << " cannot run kernels built for sm_90a";
  EXPECT_GT(devices.front().memory_bytes, size_t{1} << 30);
}

}  // namespace
}  // namespace fairway
