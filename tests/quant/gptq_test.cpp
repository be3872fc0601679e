// GPTQ against the vector of scoring spec §11.2 and the self-checks of §4.12b.
#include "quant/gptq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/backends.h"
#include "base/trellis.h"
#include "quant/problem.h"
#include "quant/quantize_model.h"

namespace fairway::quant_test {
namespace {

using ::testing::ElementsAre;

constexpr double kClip = 12.85;
constexpr int kBits = 6;

double rtn_loss(OpRunner& runner, const Matrix& w, const HalfScales& scales, const Hessian& hessian) {
  const std::vector<int8_t> q = round_to_grid(w.view(), scales, kBits, runner.pool());
  const std::vector<float> error = error_of(w.view(), q, scales, runner.pool());
  return hessian_loss(runner, {error.data(), w.rows, w.cols}, hessian);
}

TEST(Gptq, GivesTheVectorOfTheSpec) {
  Queue queue(2);
  const std::vector<float> w{.93F, -.36F, .21F, .47F, .14F, .62F, -.83F, -.29F};
  const Hessian hessian{4, {2, 1.2, .3, -.8, 1.2, 1.5, .2, -.5, .3, .2, 3, 1.1, -.8, -.5, 1.1, 1}};
  const HalfScales scales{to_half(0.31005859375F), to_half(0.27001953125F)};
  const std::vector<double> upper{1.083468, -.856648, -.086393, -1.884987, 0, 1.066837, -.676423, .505775,
                                  0,        0,        .886188,  .434939,   0, 0,        0,        .990755};
  for (const Backend backend : {Backend::ref, Backend::cpu}) {
    OpRunner runner(queue, backend);
    const GptqFactor factor = factorize(runner, hessian, {});
    EXPECT_THAT(factor.order, ElementsAre(2, 0, 1, 3));
    for (size_t i = 0; i < upper.size(); ++i) EXPECT_NEAR(factor.upper[i], upper[i], 1e-6) << i;
    const GptqResult result = gptq(runner, {w.data(), 2, 4}, scales, {3}, factor);
    EXPECT_THAT(result.q, ElementsAre(3, -1, 1, 1, 0, 3, -3, -1));
    EXPECT_NEAR(result.loss, .066725, 1e-6);
    const std::vector<int8_t> rounded = round_to_grid({w.data(), 2, 4}, scales, 3, runner.pool());
    EXPECT_THAT(rounded, ElementsAre(3, -1, 1, 2, 1, 2, -3, -1));
    const std::vector<float> error = error_of({w.data(), 2, 4}, rounded, scales, runner.pool());
    EXPECT_NEAR(hessian_loss(runner, {error.data(), 2, 4}, hessian), .103125, 1e-6);
  }
}

TEST(Gptq, WithAnIdentityHessianIsRounding) {  // (i)
  Queue queue(2);
  OpRunner runner(queue);
  const Matrix w = gaussian(33, 200, 5);
  const HalfScales scales = sdclip_scales(w.view(), kClip, kBits, runner.pool());
  const GptqFactor factor = factorize(runner, diagonal(std::vector<double>(200, 1.0)), {});
  EXPECT_EQ(gptq(runner, w.view(), scales, {kBits}, factor).q, round_to_grid(w.view(), scales, kBits, runner.pool()));
}

TEST(Gptq, LosesLessTheMoreInputsAreCorrelated) {  // (iii)
  Queue queue(2);
  OpRunner runner(queue);
  const Matrix w = gaussian(128, 64, 6);
  const HalfScales scales = sdclip_scales(w.view(), kClip, kBits, runner.pool());
  struct Inputs {
    int64_t factors;
    double strength, least, most;
  };
  for (const Inputs& in : {Inputs{8, 12, 0.1, 0.35}, Inputs{16, 3, 0.35, 0.65}, Inputs{48, 1, 0.7, 0.95}}) {
    const Hessian hessian = factor_model(64, in.factors, in.strength, 7);
    const GptqResult result = gptq(runner, w.view(), scales, {kBits}, factorize(runner, hessian, {}));
    const double ratio = result.loss / rtn_loss(runner, w, scales, hessian);
    EXPECT_TRUE(ratio >= in.least && ratio <= in.most) << ratio << " with strength " << in.strength;
    const auto rounded = round_to_grid(w.view(), scales, kBits, runner.pool());
    EXPECT_GT(squared_error(w.view(), result.q, scales, runner.pool()), squared_error(w.view(), rounded, scales, runner.pool()))
        << "the plain error must rise";
    const std::vector<float> error = error_of(w.view(), result.q, scales, runner.pool());
    EXPECT_NEAR(hessian_loss(runner, {error.data(), w.rows, w.cols}, hessian) / result.loss, 1, 1e-4)
        << "the loss told by GPTQ is that of its result";
  }
}

// Inputs whose columns differ by far: at the same step in the geometric mean the loss falls as column_gain() says, it is that
// of the weights as they are read back, and bits stay about the same.
TEST(Gptq, StepsByColumnLoseLess) {
  Queue queue(2);
  OpRunner runner(queue);
  const Matrix w = gaussian(256, 64, 6);
  Hessian hessian = factor_model(64, 16, 0.3, 7);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j) hessian.values[static_cast<size_t>(i * 64 + j)] *= std::exp2((i % 8 + j % 8) / 2.0);
  const GptqFactor alike = factorize(runner, hessian, {.share = 1e-6});
  GptqFactor by_column = alike;
  take_column_steps(by_column);
  ASSERT_EQ(by_column.columns.size(), 64U);
  const double gain = column_gain(alike);
  EXPECT_GT(gain, 0.4);
  EXPECT_LT(column_gain(by_column), 0.02) << "what is left is rounding to classes";

  const auto make = [&](const GptqFactor& factor) {
    const DividedWeight divided(w.view(), {}, factor.columns, runner.pool());
    QuantizedTensor t{
        .rows = w.rows, .cols = w.cols, .coding = TensorCoding::integer_rows, .bits = 8, .columns = factor.columns};
    t.scale = shared_step_scales(divided.view(), 0.1, {}, runner.pool());
    GptqResult result = gptq(runner, w.view(), t.scale, {t.bits}, factor);
    t.q = std::move(result.q);
    std::vector<float> error(w.values.size());
    dequantize(t, error);
    double squares = 0;
    for (size_t i = 0; i < error.size(); ++i) {
      error[i] = w.values[i] - error[i];
      squares += static_cast<double>(error[i]) * static_cast<double>(error[i]);
    }
    EXPECT_NEAR(hessian_loss(runner, {error.data(), w.rows, w.cols}, hessian) / result.loss, 1, 1e-3);
    EXPECT_NEAR(squared_error(w.view(), t.q, t.scale, runner.pool(), step_factors(t.columns)) / squares, 1, 1e-6);
    return result.loss;
  };
  EXPECT_NEAR(0.5 * std::log2(make(alike) / make(by_column)), gain, 0.06);
}

// At its entropy a trellis loses as little as rounding with 0.17 bits more a weight would, at every rate; and the number of
// threads changes nothing.
TEST(Gptq, ATrellisLosesLess) {
  Queue queue(2), alone(1);
  OpRunner runner(queue), by_one(alone);
  const Matrix w = gaussian(512, 64, 6);
  const Hessian hessian = factor_model(64, 16, 0.3, 7);
  const GptqFactor factor = factorize(runner, hessian, {});
  const auto count = static_cast<double>(w.values.size());
  for (const double step : {0.03, 0.06, 0.1, 0.15}) {
    const HalfScales scales = shared_step_scales(w.view(), step, {}, runner.pool());
    const HalfScales halves = shared_step_scales(w.view(), step / 2, {}, runner.pool(), kTrellisLevel);
    const GptqResult rounded = gptq(runner, w.view(), scales, {8}, factor);
    const GptqResult found = gptq(runner, w.view(), halves, {8, true}, factor);
    const double bits = entropy_of(rounded.q) / count - entropy_of(found.q, true) / count;
    const double gain = bits + 0.5 * std::log2(rounded.loss / found.loss);
    EXPECT_TRUE(gain > 0.16 && gain < 0.32) << gain << " at step " << step;
    EXPECT_EQ(gptq(by_one, w.view(), halves, {8, true}, factor).q, found.q);
    const std::vector<float> error = error_of(w.view(), found.q, halves, runner.pool());
    EXPECT_NEAR(hessian_loss(runner, {error.data(), w.rows, w.cols}, hessian) / found.loss, 1, 1e-4);
    std::vector<int> states(64, 0);
    for (size_t i = 0; i < found.q.size(); ++i) {
      int& state = states[i % 64];
      if (i / 64 % kTrellisRows == 0) state = 0;
      ASSERT_EQ(found.q[i] & 1, state & 1) << i;
      state = next_trellis_state(state, found.q[i]);
    }
  }
}

TEST(Gptq, ColumnFactorsAreExactPowersOfTwoEachFourClasses) {
  for (int octave = -6; octave <= 6; ++octave)
    EXPECT_EQ(step_factor(static_cast<int8_t>(4 * octave)), std::ldexp(1.0F, octave));
  EXPECT_EQ(step_factor(-1), std::ldexp(step_factor(3), -1));
  EXPECT_FLOAT_EQ(step_factor(2) * step_factor(2), 2);
  EXPECT_FLOAT_EQ(step_factor(1) * step_factor(3), 2);
}

TEST(Gptq, BitsDoNotDependOnThreadsAndRefAgrees) {
  const Matrix w = gaussian(70, 300, 8);
  const Hessian hessian = factor_model(300, 40, 5, 9);
  std::vector<GptqResult> results;
  std::vector<std::vector<float>> uppers;
  for (const int threads : {1, 2, 3}) {
    Queue queue(threads);
    OpRunner runner(queue, threads == 3 ? Backend::ref : Backend::cpu);
    const HalfScales scales = sdclip_scales(w.view(), kClip, kBits, runner.pool());
    const GptqFactor factor = factorize(runner, hessian, {});
    uppers.push_back(factor.upper);
    results.push_back(gptq(runner, w.view(), scales, {kBits}, factor));
  }
  EXPECT_EQ(uppers[0], uppers[1]);
  EXPECT_EQ(results[0].q, results[1].q);
  EXPECT_EQ(results[0].loss, results[1].loss);
  int64_t different = 0;  // f32 against double: a value on the edge between two levels may fall to either side
  for (size_t i = 0; i < results[0].q.size(); ++i) different += results[0].q[i] != results[2].q[i] ? 1 : 0;
  EXPECT_LE(different, 20);
  EXPECT_NEAR(results[2].loss / results[0].loss, 1, 1e-3);
}

// Rounded at once or one after the other, also below each other on a trellis, and by a device's programs.
TEST(Gptq, ManyScalesAtOnceAreEachAsAlone) {
  Queue queue(2), with_device(1);
  const auto executor = make_executor(Backend::cpu, with_device);
  OpRunner here(queue), there({with_device, *executor});
  const Hessian hessian = factor_model(96, 40, 5, 3);
  const GptqFactor factor = factorize(here, hessian, {});
  for (const int64_t rows : {70, 256}) {
    const Matrix w = gaussian(rows, 96, 11);
    std::vector<HalfScales> scales;
    for (const double step : {0.01, 0.05, 0.2})
      scales.push_back(shared_step_scales(w.view(), step, {}, here.pool(), kTrellisLevel));
    std::vector<const HalfScales*> all;
    for (const HalfScales& one : scales) all.push_back(&one);
    for (const bool trellis : {false, true}) {
      for (OpRunner* runner : {&here, &there}) {
        const std::vector<GptqResult> together = gptq(*runner, w.view(), all, {8, trellis}, factor);
        ASSERT_EQ(together.size(), scales.size());
        for (size_t n = 0; n < scales.size(); ++n) {
          const GptqResult alone = gptq(here, w.view(), scales[n], {8, trellis}, factor);
          EXPECT_EQ(together[n].q, alone.q) << rows << (trellis ? " rows on a trellis" : " rows");
          EXPECT_EQ(together[n].row_losses, alone.row_losses);
          EXPECT_EQ(together[n].loss, alone.loss);
        }
      }
    }
  }
}

// The programs that a device runs, here on the CPU: the same bits, also when a shape comes again.
TEST(Gptq, ProgramsOfADeviceGiveTheSameBits) {
  Queue alone(1), with_device(1);
  const auto executor = make_executor(Backend::cpu, with_device);
  OpRunner here(alone), there({with_device, *executor});
  for (const uint64_t seed : {8, 9}) {
    const Matrix w = gaussian(70, 300, seed);
    const Hessian hessian = factor_model(300, 40, 5, seed + 1);
    const HalfScales scales = sdclip_scales(w.view(), kClip, kBits, here.pool());
    const GptqFactor wanted = factorize(here, hessian, {}), factor = factorize(there, hessian, {});
    EXPECT_EQ(factor.upper, wanted.upper);
    for (const int bits : {kBits, 4}) {
      const GptqResult result = gptq(there, w.view(), scales, {bits}, factor),
                       want = gptq(here, w.view(), scales, {bits}, wanted);
      EXPECT_EQ(result.q, want.q);
      EXPECT_EQ(result.loss, want.loss);
    }
  }
  EXPECT_EQ(factorize(there, {2, {1, 3, 3, 1}}, {}).retries, 3);
  EXPECT_FALSE(factorize(there, {2, {1, 1e9, 1e9, 1}}, {}).usable());
}

TEST(Gptq, DeadColumnsBecomeZeroAndCostNothing) {
  Queue queue(2);
  OpRunner runner(queue);
  const Matrix w = gaussian(9, 40, 10);
  Hessian hessian = factor_model(40, 5, 3, 11);
  for (const int64_t dead : {0, 17, 39})
    for (int64_t i = 0; i < 40; ++i)
      hessian.values[static_cast<size_t>(dead * 40 + i)] = hessian.values[static_cast<size_t>(i * 40 + dead)] = 0;
  const HalfScales scales = sdclip_scales(w.view(), kClip, kBits, runner.pool());
  const GptqFactor factor = factorize(runner, hessian, {});
  ASSERT_TRUE(factor.usable());
  EXPECT_EQ(std::count(factor.dead.begin(), factor.dead.end(), 1), 3);
  const GptqResult result = gptq(runner, w.view(), scales, {kBits}, factor);
  for (size_t row = 0; row < 9; ++row)
    for (const size_t dead : {0UL, 17UL, 39UL}) EXPECT_EQ(result.q[row * 40 + dead], 0);
  EXPECT_LT(result.loss, rtn_loss(runner, w, scales, hessian));
}

TEST(Gptq, IndefiniteHessiansAreDampedMoreAndThenGivenUp) {
  Queue queue(1);
  OpRunner runner(queue);
  const GptqFactor mended = factorize(runner, {2, {1, 3, 3, 1}}, {});
  ASSERT_TRUE(mended.usable());
  EXPECT_EQ(mended.retries, 3) << "0.01, 0.1 and 1 are too little";
  EXPECT_NEAR(mended.added, 10, 1e-12);
  const GptqFactor hopeless = factorize(runner, {2, {1, 1e6, 1e6, 1}}, {});
  EXPECT_FALSE(hopeless.usable());
  EXPECT_EQ(hopeless.retries, kDampingRetries);
}

TEST(Gptq, ExtraDampingIsAddedBeforeTheShare) {
  Queue queue(1);
  OpRunner runner(queue);
  const GptqFactor factor = factorize(runner, diagonal({3, 0, 1, 0}), {.share = 0.01, .extra = 0.01});
  EXPECT_EQ(std::count(factor.dead.begin(), factor.dead.end(), 1), 0) << "nothing is dead once the diagonal was raised";
  EXPECT_NEAR(factor.added, 0.01 + 0.01 * 1.01, 1e-12);
  EXPECT_NEAR(factor.diagonal[1], factor.added, 1e-12);
}

TEST(Gptq, TakesOneRowAndOneColumn) {
  Queue queue(2);
  OpRunner runner(queue);
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 7}, {7, 1}, {1, 1}, {3, 129}}) {
    const Matrix w = gaussian(rows, cols, 12);
    const HalfScales scales = sdclip_scales(w.view(), kClip, kBits, runner.pool());
    const Hessian hessian = factor_model(cols, 2, 2, 13);
    const GptqResult result = gptq(runner, w.view(), scales, {kBits}, factorize(runner, hessian, {}));
    EXPECT_EQ(result.q.size(), static_cast<size_t>(rows * cols));
    EXPECT_TRUE(std::isfinite(result.loss));
  }
}

}  // namespace
}  // namespace fairway::quant_test
