// Calibration on the device: text drawn there is the CPU's where rounding cannot tip a draw, and second moments are near those
// of the definition, over several batches and passes of a looped layer.
#include "pack/calibrate.h"

#include "backends/backends.h"
#include "generate/sample_rows.h"
#include "ops/cuda/device.h"
#include "pack/naive_hessians.h"
#include "quant/quantize_model.h"

namespace fairway::calibrate_test {
namespace {

using generate_test::randomize;
using generate_test::shrunk;

constexpr int64_t kRows = 6, kLength = 300;  // more than two runs of cached positions

class CudaCalibration : public testing::TestWithParam<std::pair<const char*, bool>> {
 protected:
  void SetUp() override {
    if (cuda::devices().empty()) GTEST_SKIP() << "no CUDA device";
    recipe_ = shrunk(GetParam().first);
    recipe_.data.seq_len = kLength;
    stage_.looped = GetParam().second;
    params_ = std::make_unique<ParamStore>(parameter_table(recipe_), ParamStore::Gradients::none);
    randomize(*params_);
  }
  std::vector<int32_t> text(Backend backend, double temperature) {
    Queue queue(1);
    const auto executor = make_executor(backend, queue);
    Decoder decoder(recipe_, *params_, kRows, kLength, stage_, *executor, Drawing{temperature});
    std::vector<int32_t> out(kRows * kLength), again(out.size());
    const RowSampling how{.temperature = temperature, .seed = 3, .vocab = recipe_.model.vocab};
    sample_rows(decoder, how, queue.pool(), out);
    sample_rows(decoder, how, queue.pool(), again);
    EXPECT_EQ(out, again) << "graphs repeat single calls";
    return out;
  }

  Recipe recipe_;
  ModelStage stage_;
  std::unique_ptr<ParamStore> params_;
};

TEST_P(CudaCalibration, TextIsTheCpus) {
  for (const double temperature : {0.0, 0.8}) {
    const auto device = text(Backend::cuda_f32, temperature), host = text(Backend::cpu, temperature);
    for (int64_t row = 0; row < kRows; ++row)  // a draw on the edge of two tokens may fall either way later on
      EXPECT_TRUE(std::equal(host.begin() + row * kLength, host.begin() + row * kLength + 40, device.begin() + row * kLength))
          << temperature << ", row " << row;
  }
}

TEST_P(CudaCalibration, HessiansAreThoseOfTheText) {
  Queue queue(1);
  const auto executor = make_executor(Backend::cuda_f32, queue);
  std::vector<std::string> problems;
  const CalibrationModel model{recipe_, *params_, stage_, *executor, queue};
  const HessianStore hessians = calibrate_self(model, {.tokens = 3 * kRows * kLength, .seed = 3}, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(hessians.batches(), 2);  // nine rows of 299 tokens fit into a pass
  Decoder decoder(recipe_, *params_, 3 * kRows, kLength, stage_, *executor, Drawing{});
  std::vector<int32_t> text(3 * kRows * kLength), seen;
  sample_rows(decoder, {.seed = 3, .vocab = recipe_.model.vocab}, queue.pool(), text);
  for (int64_t row = 0; row < 3 * kRows; ++row)
    seen.insert(seen.end(), text.begin() + row * kLength, text.begin() + (row + 1) * kLength - 1);
  expect_near(hessians, sums_of(recipe_, *params_, stage_, seen, kLength - 1), 0.5);
}

TEST_P(CudaCalibration, IntegersAreThoseOfTheCpu) {
  Queue queue(1), alone(1);
  const auto executor = make_executor(Backend::cuda_f32, queue);
  std::vector<std::string> problems;
  const CalibrationModel model{recipe_, *params_, stage_, *executor, queue};
  const HessianStore hessians = calibrate_self(model, {.tokens = kRows * kLength, .seed = 3}, problems);
  QuantReport report;
  const QuantizedModel device = quantize_model(*params_, recipe_, &hessians, queue, report);
  const QuantizedModel host = quantize_model(*params_, recipe_, &hessians, alone, report);
  EXPECT_TRUE(report.fallbacks().empty());
  ASSERT_EQ(device.tensors.size(), host.tensors.size());
  int64_t different = 0, all = 0;  // a value on the edge between two levels may fall to either side
  for (size_t i = 0; i < host.tensors.size(); ++i) {
    ASSERT_EQ(device.tensors[i].q.size(), host.tensors[i].q.size());
    for (size_t k = 0; k < host.tensors[i].q.size(); ++k, ++all) different += device.tensors[i].q[k] != host.tensors[i].q[k];
  }
  EXPECT_LT(different, all / 100) << "of " << all;
}

INSTANTIATE_TEST_SUITE_P(Recipes, CudaCalibration, testing::Values(std::pair{"pr1105", false}, std::pair{"pr1584", true}));

}  // namespace
}  // namespace fairway::calibrate_test
