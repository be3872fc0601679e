// Errors that make up for each other between the outputs of a weight too: what that saves, what it is told to lose, and the
// same integers from threads, programs of a device and several scales at once.
#include <gtest/gtest.h>

#include <numeric>

#include "backends/backends.h"
#include "base/trellis.h"
#include "quant/problem.h"
#include "quant/quantize_model.h"

namespace fairway::quant_test {
namespace {

// tr(G·D·H·Dᵀ) with G as the factor has it: (VᵀV)⁻¹, so that it is ‖V⁻ᵀ·D‖² by H.
double two_sided_loss(OpRunner& runner, const Matrix& w, const GptqResult& result, const HalfScales& scales,
                      const OutputFactor& outputs, const Hessian& hessian) {
  std::vector<float> error = error_of(w.view(), result.q, scales, runner.pool());
  for (int64_t i = 0; i < w.rows; ++i)
    for (int64_t j = 0; j < w.cols; ++j) {
      double left = error[static_cast<size_t>(i * w.cols + j)];
      for (int64_t k = 0; k < i; ++k)
        left -= static_cast<double>(outputs.upper[static_cast<size_t>(k * w.rows + i)]) *
                static_cast<double>(error[static_cast<size_t>(k * w.cols + j)]);
      error[static_cast<size_t>(i * w.cols + j)] =
          static_cast<float>(left / outputs.upper[static_cast<size_t>(i * w.rows + i)]);
    }
  return hessian_loss(runner, {error.data(), w.rows, w.cols}, hessian);
}

class TwoSided : public testing::TestWithParam<bool> {  // on a trellis
 protected:
  HalfScales scales(double step) {
    return GetParam() ? shared_step_scales(w_.view(), step / 2, {}, runner_.pool(), kTrellisLevel)
                      : shared_step_scales(w_.view(), step, {}, runner_.pool());
  }
  Queue queue_{2};
  OpRunner runner_{queue_};
  Matrix w_ = gaussian(160, 64, 6);
  Hessian hessian_ = factor_model(64, 16, 0.3, 7);
  GptqFactor factor_ = factorize(runner_, hessian_, {});
};

TEST_P(TwoSided, LosesLessWhereOutputsGoTogether) {
  const OutputFactor outputs = factorize_outputs(runner_, factor_model(160, 6, 20, 9));
  ASSERT_TRUE(outputs.usable());
  for (const double step : {0.03, 0.1}) {
    const HalfScales s = scales(step);
    const GptqResult one = gptq(runner_, w_.view(), s, {8, GetParam()}, factor_);
    const GptqResult both = gptq(runner_, w_.view(), s, {8, GetParam(), &outputs}, factor_);
    const double was = two_sided_loss(runner_, w_, one, s, outputs, hessian_);
    const double is = two_sided_loss(runner_, w_, both, s, outputs, hessian_);
    EXPECT_LT(is, 0.8 * was) << "at step " << step;
    EXPECT_NEAR(both.loss / is, 1, 1e-3) << "the loss told is that of the result";
    EXPECT_LT(one.loss,
              hessian_loss(runner_, {error_of(w_.view(), both.q, s, runner_.pool()).data(), w_.rows, w_.cols}, hessian_))
        << "each is best at what it minds";
    EXPECT_NEAR(entropy_of(both.q, GetParam()) / entropy_of(one.q, GetParam()), 1, 0.02) << "and takes about as many bits";
  }
}

TEST_P(TwoSided, IsRoundingWhereOutputsSayNothingOfEachOther) {
  const OutputFactor alike = factorize_outputs(runner_, diagonal(std::vector<double>(160, 3.0)));
  for (const float count : alike.counts) EXPECT_FLOAT_EQ(count, 1);
  const HalfScales s = scales(0.05);
  const GptqResult one = gptq(runner_, w_.view(), s, {8, GetParam()}, factor_);
  const GptqResult both = gptq(runner_, w_.view(), s, {8, GetParam(), &alike}, factor_);
  int64_t different = 0;
  for (size_t i = 0; i < one.q.size(); ++i) different += one.q[i] != both.q[i] ? 1 : 0;
  EXPECT_LE(different, 20) << "aims in float, one side in double";
  EXPECT_NEAR(both.loss / one.loss, 1, 1e-3);
}

TEST_P(TwoSided, BitsDoNotDependOnThreadsDevicesOrCompany) {
  const OutputFactor outputs = factorize_outputs(runner_, factor_model(160, 6, 20, 9));
  Queue alone(1), with_device(1);
  const auto executor = make_executor(Backend::cpu, with_device);
  OpRunner by_one(alone), there({with_device, *executor});
  const std::vector<HalfScales> all{scales(0.02), scales(0.05), scales(0.2)};
  const std::vector<const HalfScales*> several{&all[0], &all[1], &all[2]};
  const std::vector<GptqResult> together = gptq(runner_, w_.view(), several, {8, GetParam(), &outputs}, factor_);
  const std::vector<GptqResult> programs = gptq(there, w_.view(), several, {8, GetParam(), &outputs}, factor_);
  for (size_t n = 0; n < all.size(); ++n) {
    const GptqResult one = gptq(by_one, w_.view(), all[n], {8, GetParam(), &outputs}, factor_);
    EXPECT_EQ(together[n].q, one.q);
    EXPECT_EQ(programs[n].q, one.q);
    EXPECT_EQ(together[n].loss, one.loss);
    EXPECT_EQ(programs[n].loss, one.loss);
    for (int64_t j = 0; j < w_.cols && GetParam(); ++j)
      for (int64_t i = 0, state = 0; i < w_.rows; ++i) {
        if (i % kTrellisRows == 0) state = 0;
        const int q = one.q[static_cast<size_t>(i * w_.cols + j)];
        ASSERT_EQ(q & 1, state & 1) << i << ", " << j;
        state = next_trellis_state(static_cast<int>(state), q);
      }
  }
  // Another factor of as many rows is sent to the device too.
  const OutputFactor other = factorize_outputs(runner_, factor_model(160, 9, 5, 4));
  EXPECT_EQ(gptq(there, w_.view(), all[1], {8, GetParam(), &other}, factor_).q,
            gptq(runner_, w_.view(), all[1], {8, GetParam(), &other}, factor_).q);
}

INSTANTIATE_TEST_SUITE_P(Gptq, TwoSided, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& p) { return p.param ? "Trellis" : "Rounded"; });

// A row counts as what is left once those below it made up for what they can: less than alone, and of a sample more than of
// all.
TEST(OutputFactor, RowsOfASampleCountMore) {
  Queue queue(2);
  OpRunner runner(queue);
  const Hessian g = factor_model(120, 4, 30, 3);
  const OutputFactor whole = factorize_outputs(runner, g), sample = factorize_outputs(runner, g, 4);
  ASSERT_EQ(whole.side, 120);
  ASSERT_EQ(sample.side, 30);
  const double mean = g.trace() / 120;
  for (int64_t i = 0; i < 30; ++i) {
    const double alone = (g.at(4 * i, 4 * i) / mean + 0.4) / 1.4;
    EXPECT_LE(sample.counts[static_cast<size_t>(i)], alone * 1.001);
    EXPECT_GE(sample.counts[static_cast<size_t>(i)], whole.counts[static_cast<size_t>(4 * i)] * 0.999F);
  }
  EXPECT_FALSE(factorize_outputs(runner, diagonal({0, 0})).usable());
  EXPECT_FALSE(factorize_outputs(runner, {2, {1, NAN, NAN, 1}}).usable());
}

}  // namespace
}  // namespace fairway::quant_test
