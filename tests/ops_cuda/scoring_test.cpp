// Modes over windows on the device (scoring spec §2.1, §2.2, §2.4): records that are made there are the same whatever the
// batch, also where the host is told the distributions, and near the CPU's.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/cuda/device.h"
#include "ops_cuda/scored.h"

namespace fairway::cuda_test {
namespace {

struct Mode {
  const char* name;
  ScoringMode mode;
  bool carried = false, documents = false;
};
using Case = std::tuple<Backend, Mode>;

class CudaScoring : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (cuda::devices().empty()) GTEST_SKIP() << "no CUDA device";
    recipe_.score.documents = mode_.documents;
    recipe_.score.slot.carried = mode_.carried;
    recipe_.score.slot.lane = 4;
  }
  Scored scored_here(std::vector<int64_t> captured = {}) const {
    return scored(recipe_, std::get<Backend>(GetParam()), stream_, std::move(captured));
  }
  const Mode mode_ = std::get<Mode>(GetParam());
  Recipe recipe_ = small_best(mode_.mode);
  const std::vector<uint16_t> stream_ = stream_of(recipe_);
};

TEST_P(CudaScoring, BatchesAndToldDistributionsChangeNoBit) {
  const Scored truth = scored_here();
  EXPECT_EQ(different_records(truth, scored_here()), 0) << "a second run";
  EXPECT_EQ(different_records(truth, scored_here({1, 300, 900, kTargets})), 0) << "with whole distributions";
  for (const int64_t windows : {1, 3, 7}) {
    recipe_.score.windows = windows;
    EXPECT_EQ(different_records(truth, scored_here()), 0) << windows << " windows at once";
  }
}

TEST_P(CudaScoring, ScoresAreNearTheCpus) {
  const Scored cpu = scored(recipe_, Backend::cpu, stream_), device = scored_here();
  const double nats = std::get<Backend>(GetParam()) == Backend::cuda ? 2e-3 : 2e-5;
  EXPECT_TRUE(std::abs(device.mean - cpu.mean) <= nats) << device.mean << " against " << cpu.mean;
  if (mode_.mode.base != ScoreMode::slot) return;
  recipe_.score.slot.lr = 0;
  EXPECT_GT(std::abs(device.mean - scored_here().mean), 5e-4) << "nothing was fitted";  // random text: it gains nothing
}

INSTANTIATE_TEST_SUITE_P(
    Backends, CudaScoring,
    testing::Combine(testing::Values(Backend::cuda, Backend::cuda_f32),
                     testing::Values(Mode{"plain", {ScoreMode::plain}}, Mode{"sliding", {ScoreMode::sliding}},
                                     Mode{"documents", {ScoreMode::sliding}, false, true},
                                     Mode{"sliding_tilt", {ScoreMode::sliding, true}}, Mode{"slot", {ScoreMode::slot}},
                                     Mode{"slot_tilt", {ScoreMode::slot, true}}, Mode{"carried", {ScoreMode::slot}, true})),
    [](const auto& test) {
      const bool half = std::get<Backend>(test.param) == Backend::cuda;
      return std::string(std::get<Mode>(test.param).name) + (half ? "_bf16" : "_float");
    });

}  // namespace
}  // namespace fairway::cuda_test
