// From gradients made of known inputs and output gradients the moments of the latter come back, up to a factor.
#include "pack/output_moments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "quant/problem.h"

namespace fairway {
namespace {

using quant_test::factor_model;
using quant_test::gaussian;
using quant_test::Matrix;

// Vectors of these second moments, with the Cholesky factor of the inverse: x = U⁻¹·z.
class Source {
 public:
  Source(OpRunner& runner, const Hessian& moments, uint64_t seed) : side_(moments.side), seed_(seed) {
    upper_ = factorize(runner, moments, {.share = 1e-9}).upper;
    order_ = factorize(runner, moments, {.share = 1e-9}).order;
  }
  Matrix draw(int64_t count) {  // (count, side)
    Matrix z = gaussian(count, side_, seed_++, 1);
    Matrix out = z;
    for (int64_t n = 0; n < count; ++n)
      for (int64_t i = side_; i-- > 0;) {  // U·x = z from below
        double left = z.values[static_cast<size_t>(n * side_ + i)];
        for (int64_t k = i + 1; k < side_; ++k)
          left -=
              static_cast<double>(upper_[static_cast<size_t>(i * side_ + k)]) * z.values[static_cast<size_t>(n * side_ + k)];
        z.values[static_cast<size_t>(n * side_ + i)] = static_cast<float>(left / upper_[static_cast<size_t>(i * side_ + i)]);
      }
    for (int64_t n = 0; n < count; ++n)
      for (int64_t i = 0; i < side_; ++i)
        out.values[static_cast<size_t>(n * side_ + order_[static_cast<size_t>(i)])] =
            z.values[static_cast<size_t>(n * side_ + i)];
    return out;
  }

 private:
  int64_t side_;
  uint64_t seed_;
  std::vector<float> upper_;
  std::vector<int32_t> order_;
};

class OfOutputs : public testing::TestWithParam<int64_t> {};  // inputs

TEST_P(OfOutputs, ComeBackFromGradients) {
  const int64_t cols = GetParam(), rows = 24, tokens = 32, sequences = 96;
  const Hessian inputs = factor_model(cols, 3, 300, 5), truth = factor_model(rows, 4, 20, 6);
  std::vector<Hessian> found;
  for (const int threads : {1, 2}) {
    Queue queue(threads);
    OpRunner runner(queue);
    HessianStore store(queue);
    store.put("inputs", cols, inputs.values);
    std::vector<float> weight(static_cast<size_t>(rows * cols));
    const TensorPlan plan{.bank = ParamId::up,
                          .slice = 0,
                          .role = QuantRole::up,
                          .integers = true,
                          .weight = {weight.data(), rows, cols},
                          .point = "inputs"};
    OutputMoments moments(queue, std::span(&plan, 1), &store);
    Source x(runner, inputs, 100), g(runner, truth, 200);
    std::vector<float> sum(weight.size());
    for (int64_t s = 0; s < sequences; ++s) {
      const Matrix xs = x.draw(tokens), gs = g.draw(tokens);
      std::vector<float> gradient(weight.size());
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < cols; ++j)
            gradient[static_cast<size_t>(i * cols + j)] +=
                gs.view().row(t)[static_cast<size_t>(i)] * xs.view().row(t)[static_cast<size_t>(j)];
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
      moments.add(0, gradient.data());
    }
    found.push_back(moments.take(0, sum.data(), static_cast<double>(sequences)));
  }
  EXPECT_EQ(found[0], found[1]) << "threads";
  const double scale = truth.trace() / found[0].trace();
  double errors = 0, all = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < rows; ++k) {
      errors += std::pow(scale * found[0].at(i, k) - truth.at(i, k), 2);
      all += std::pow(truth.at(i, k), 2);
      EXPECT_EQ(found[0].at(i, k), found[0].at(k, i));
    }
  EXPECT_LT(std::sqrt(errors / all), 0.15);
}

INSTANTIATE_TEST_SUITE_P(OutputMoments, OfOutputs, testing::Values(40, 300));  // all directions; mixtures of them

TEST(OutputMoments, AreLeftOutWithoutInputs) {
  Queue queue(1);
  HessianStore store(queue);
  store.put("unusable", 2, {1, 9, 9, 1});
  std::vector<float> weight(4), gradient{1, 2, 3, 4};
  std::vector<TensorPlan> plans(
      3, {.bank = ParamId::up, .slice = 0, .role = QuantRole::up, .integers = true, .weight = {weight.data(), 2, 2}});
  plans[0].point = "absent", plans[1].point = "unusable", plans[2].point = "unusable", plans[2].role = QuantRole::table;
  OutputMoments some(queue, plans, &store), none(queue, plans, nullptr);
  for (OutputMoments* moments : {&some, &none})
    for (size_t i = 0; i < plans.size(); ++i) {
      moments->add(i, gradient.data());
      EXPECT_EQ(moments->take(i, gradient.data(), 1).side, 0) << i;
    }
}

}  // namespace
}  // namespace fairway
