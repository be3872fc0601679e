// Adapters of many documents on the device (scoring spec §2.6), with the published width: the same records whatever stands
// beside a document, digests of the distributions that the host is told, and scores near the CPU's.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/cuda/device.h"
#include "ops_cuda/scored.h"

namespace fairway::cuda_test {
namespace {

class CudaAdapters : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (cuda::devices().empty()) GTEST_SKIP() << "no CUDA device";
  }
  Recipe recipe_ = small_best({ScoreMode::lora_ttt, true});
  const std::vector<uint16_t> stream_ = stream_of(recipe_);
};

TEST_P(CudaAdapters, DocumentsAtOnceChangeNoBit) {
  recipe_.score.lora.batch = 1;
  const Scored truth = scored(recipe_, GetParam(), stream_);
  for (const int64_t batch : {3, 64}) {
    recipe_.score.lora.batch = batch;
    EXPECT_EQ(different_records(truth, scored(recipe_, GetParam(), stream_)), 0) << "with " << batch << " at once";
  }
}

TEST_P(CudaAdapters, DigestsAreThoseOfTheDistributionsOnTheHost) {
  const Scored plain = scored(recipe_, GetParam(), stream_),
               told = scored(recipe_, GetParam(), stream_, {1, 400, 900, kTargets});
  ASSERT_EQ(told.ledger.captures().size(), 4U);
  EXPECT_NE(plain.ledger.tilt_nats(), 0) << "nothing was tilted";
  for (const auto& [target, values] : told.ledger.captures()) {
    ASSERT_EQ(values.size(), static_cast<size_t>(recipe_.model.vocab));
    EXPECT_EQ(told.ledger.digest(target), plain.ledger.digest(target)) << target;
    EXPECT_NEAR(values[stream_[static_cast<size_t>(target)]], -told.ledger.nll(target), 0.01) << target;
  }
}

TEST_P(CudaAdapters, ScoresAreNearTheCpus) {
  const Scored cpu = scored(recipe_, Backend::cpu, stream_), device = scored(recipe_, GetParam(), stream_);
  recipe_.score.lora.lr = 0;
  EXPECT_LT(device.mean, scored(recipe_, GetParam(), stream_).mean - 0.05) << "nothing was learned";
  const double nats = GetParam() == Backend::cuda ? 2e-3 : 2e-5;
  EXPECT_TRUE(std::abs(device.mean - cpu.mean) <= nats) << device.mean << " against " << cpu.mean;
}

INSTANTIATE_TEST_SUITE_P(Backends, CudaAdapters, testing::Values(Backend::cuda, Backend::cuda_f32),
                         [](const auto& test) { return test.param == Backend::cuda ? "bf16" : "float"; });

}  // namespace
}  // namespace fairway::cuda_test
