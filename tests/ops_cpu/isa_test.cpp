// The choice of instruction set, the vector mathematics and the peak probe.
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "ops/cpu/peak.h"
#include "ops_cpu/helpers.h"

namespace fairway::cpu {
namespace {

TEST(Isa, FindsOnlyKnownNames) {
  EXPECT_EQ(find_kernels("sse9"), nullptr);
  ASSERT_NE(find_kernels("generic"), nullptr);
  EXPECT_STREQ(find_kernels("generic")->name, "generic");
}

TEST(IsaDeathTest, UnknownNameInTheEnvironmentIsAnInputError) {
  // A child process, because the choice is made once.
  EXPECT_EXIT(
      {
        setenv("FAIRWAY_ISA", "sse9", 1);
        try {
          kernels();
        } catch (const InputError& error) {
          std::exit(std::string(error.what()).find("sse9") != std::string::npos ? 42 : 1);
        }
        std::exit(0);
      },
      testing::ExitedWithCode(42), "");
}

class Maths : public IsaTest {
 protected:
  // Largest distance in units of the last place of the true value.
  double worst_ulp(void (*function)(const float*, float*, int64_t), double (*truth)(double), float low, float high) {
    constexpr int64_t kCount = 20011;
    std::vector<float> x(kCount), y(kCount);
    for (int64_t i = 0; i < kCount; ++i) x[i] = low + (high - low) * (static_cast<float>(i) / (kCount - 1));
    function(x.data(), y.data(), kCount);
    double worst = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const double want = truth(x[i]);
      const float near = static_cast<float>(std::fabs(want));
      const double ulp = std::nextafter(near, std::numeric_limits<float>::infinity()) - near;
      const double error = std::fabs(y[i] - want) / ulp;
      if (!(error <= worst)) worst = error;
    }
    return worst;
  }
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

TEST_P(Maths, StayWithinTwoUlp) {
  const MathKernels& math = GetParam()->math;
  EXPECT_LE(worst_ulp(math.exp, std::exp, -87.0f, 88.7f), 2.0);
  EXPECT_LE(worst_ulp(math.exp, std::exp, -1.0f, 1.0f), 2.0);
  EXPECT_LE(worst_ulp(math.sigmoid, sigmoid, -20.0f, 20.0f), 3.0);
  EXPECT_LE(worst_ulp(math.tanh, std::tanh, -10.0f, 10.0f), 3.0);
  EXPECT_LE(worst_ulp(math.tanh, std::tanh, -0.01f, 0.01f), 2.0);
}

TEST_P(Maths, KeepLimitsAndNan) {
  const MathKernels& math = GetParam()->math;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float x[] = {0.0f, -0.0f, kInf, -kInf, 200.0f, -200.0f, std::numeric_limits<float>::quiet_NaN()};
  float y[7];
  math.exp(x, y, 7);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1.0f);
  EXPECT_EQ(y[2], kInf);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_EQ(y[4], kInf);
  EXPECT_EQ(y[5], 0.0f);
  EXPECT_TRUE(std::isnan(y[6]));
  math.sigmoid(x, y, 7);
  EXPECT_EQ(y[0], 0.5f);
  EXPECT_EQ(y[2], 1.0f);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_TRUE(std::isnan(y[6]));
  math.tanh(x, y, 7);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[2], 1.0f);
  EXPECT_EQ(y[3], -1.0f);
  EXPECT_EQ(y[4], 1.0f);
  EXPECT_TRUE(std::isnan(y[6]));
}

TEST_P(Maths, PeakProbeCounts) {
  EXPECT_GT(GetParam()->fma_burst(10), 10.0 * 2 * 12 * 3);
  ThreadPool pool(2);
  EXPECT_GT(fma_peak_gflops(pool, 1e-4), 0.0);
}

INSTANTIATE_TEST_SUITE_P(Isa, Maths, testing::ValuesIn(available_kernels()), isa_test_name);

}  // namespace
}  // namespace fairway::cpu
