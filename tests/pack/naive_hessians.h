// XᵀX of every observe point by the definition, and how far a store is from it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "backends/backends.h"
#include "generate/tiny_recipes.h"
#include "quant/hessians.h"
#include "score/eval_model.h"

namespace fairway::calibrate_test {

using Sums = std::map<std::string, std::vector<double>>;

inline Observer summing(Sums& sums, double weight = 1) {
  return [&sums, weight](std::string_view point, const Tensor& rows) {
    if (!is_hessian_point(point)) return;
    const int64_t side = rows.cols();
    std::vector<double>& sum = sums[std::string(point)];
    sum.resize(static_cast<size_t>(side * side));
    for (int64_t r = 0; r < rows.rows(); ++r)
      for (int64_t i = 0; i < side; ++i)
        for (int64_t j = 0; j < side; ++j)
          sum[static_cast<size_t>(i * side + j)] += weight * static_cast<double>(rows.as<float>()[r * side + i]) *
                                                    static_cast<double>(rows.as<float>()[r * side + j]);
  };
}

// Every point of `want`·factor, relative to its largest entry; `lower`: only that triangle is looked at.
inline void expect_near(const HessianStore& have, const Sums& want, double factor, bool lower = false) {
  EXPECT_EQ(have.all().size(), want.size());
  for (const auto& [point, sum] : want) {
    const Hessian* hessian = have.find(point);
    ASSERT_NE(hessian, nullptr) << point;
    ASSERT_EQ(hessian->values.size(), sum.size()) << point;
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < hessian->side; ++i)
      for (int64_t j = 0; j < (lower ? i + 1 : hessian->side); ++j) {
        const double wanted = factor * sum[static_cast<size_t>(i * hessian->side + j)];
        const double difference = std::abs(hessian->at(i, j) - wanted);
        if (!(difference <= worst)) worst = difference;
        largest = std::max(largest, std::abs(wanted));
      }
    EXPECT_LE(worst, 1e-4 * largest) << point;
  }
}

// Sums over rows of tokens, by a whole forward pass on the reference backend.
inline Sums sums_of(const Recipe& recipe, const ParamStore& params, ModelStage stage, std::span<const int32_t> tokens,
                    int64_t row_length) {
  Queue queue(1);
  const auto executor = make_executor(Backend::ref, queue);
  EvalModel model(recipe, static_cast<int64_t>(tokens.size()) / row_length, row_length, stage, *executor);
  std::copy_n(params.flat_values().as<float>(), params.flat_values().numel(), model.params().flat_values().as<float>());
  std::copy(tokens.begin(), tokens.end(), model.tokens().begin());
  std::fill(model.targets().begin(), model.targets().end(), 0);
  Sums sums;
  model.run(summing(sums));
  return sums;
}

}  // namespace fairway::calibrate_test
