// Made-up weights and inputs for the quantizers.
#pragma once

#include <cmath>
#include <random>

#include "base/half.h"
#include "quant/gptq.h"

namespace fairway::quant_test {

struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<float> values;
  MatrixView view() const { return {values.data(), rows, cols}; }
};

inline Matrix gaussian(int64_t rows, int64_t cols, uint64_t seed, float deviation = 0.1F) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<float> normal(0, deviation);
  Matrix m{rows, cols, std::vector<float>(static_cast<size_t>(rows * cols))};
  for (float& value : m.values) value = normal(bits);
  return m;
}

// H = LᵀL/factors·strength + I: inputs made of a few common factors and white noise.
inline Hessian factor_model(int64_t side, int64_t factors, double strength, uint64_t seed) {
  const Matrix loads = gaussian(factors, side, seed, 1);
  Hessian hessian{side, std::vector<double>(static_cast<size_t>(side * side), 0.0)};
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j) {
      double sum = i == j ? 1 : 0;
      for (int64_t f = 0; f < factors; ++f)
        sum += strength / static_cast<double>(factors) * static_cast<double>(loads.view().row(f)[static_cast<size_t>(i)]) *
               static_cast<double>(loads.view().row(f)[static_cast<size_t>(j)]);
      hessian.values[static_cast<size_t>(i * side + j)] = sum;
    }
  return hessian;
}

inline Hessian diagonal(const std::vector<double>& entries) {
  const auto side = static_cast<int64_t>(entries.size());
  Hessian hessian{side, std::vector<double>(entries.size() * entries.size(), 0.0)};
  for (size_t i = 0; i < entries.size(); ++i) hessian.values[i * entries.size() + i] = entries[i];
  return hessian;
}

inline double entropy(const std::vector<int8_t>& q) {  // bits per value
  std::vector<double> counts(256, 0.0);
  for (const int8_t value : q) counts[static_cast<size_t>(value + 128)] += 1;
  double bits = 0;
  for (const double count : counts)
    if (count > 0) bits -= count / static_cast<double>(q.size()) * std::log2(count / static_cast<double>(q.size()));
  return bits;
}

}  // namespace fairway::quant_test
