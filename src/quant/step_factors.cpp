#include "quant/step_factors.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "quant/gptq.h"

namespace fairway {
namespace {

constexpr double kLeastGain = 0.02;  // bits a weight: a class takes about two bits, and stands for a hundred weights or more
constexpr int kMostRowClass = 12;

// log2 of ℓ = 1/U, by column; 0 of columns that are never read.
std::vector<double> log_lengths(const GptqFactor& factor) {
  std::vector<double> out(static_cast<size_t>(factor.side), 0.0);
  for (int64_t i = 0; i < factor.side; ++i) {
    const auto column = static_cast<size_t>(factor.order[static_cast<size_t>(i)]);
    const auto upper = static_cast<double>(factor.upper[static_cast<size_t>(i * factor.side + i)]);
    if (factor.dead[column] == 0) out[column] = -std::log2(upper);
  }
  return out;
}

struct Means {
  double squares = 0, logs = 0;  // of ℓ² and of log2 ℓ
};
Means means_of(const GptqFactor& factor, const std::vector<double>& logs) {
  Means out;
  int64_t live = 0;
  for (size_t column = 0; column < logs.size(); ++column) {
    if (factor.dead[column] != 0) continue;
    out.squares += std::exp2(2 * logs[column]);
    out.logs += logs[column];
    ++live;
  }
  const auto count = static_cast<double>(std::max<int64_t>(live, 1));
  return {out.squares / count, out.logs / count};
}

}  // namespace

float step_factor(int8_t step_class) {
  constexpr std::array<float, kStepClassesAnOctave> kParts{1.0F, 1.18920712F, 1.41421356F, 1.68179283F};
  const int octave =
      step_class >= 0 ? step_class / kStepClassesAnOctave : -((kStepClassesAnOctave - 1 - step_class) / kStepClassesAnOctave);
  return std::ldexp(kParts[static_cast<size_t>(step_class - octave * kStepClassesAnOctave)], octave);
}

std::vector<float> step_factors(std::span<const int8_t> classes) {
  std::vector<float> out(classes.size());
  std::transform(classes.begin(), classes.end(), out.begin(), step_factor);
  return out;
}

double column_gain(const GptqFactor& factor) {
  const Means means = means_of(factor, log_lengths(factor));
  return means.squares > 0 ? 0.5 * std::log2(means.squares) - means.logs : 0;
}

double mean_log_length(const GptqFactor& factor) { return means_of(factor, log_lengths(factor)).logs; }

std::vector<int8_t> column_classes(const GptqFactor& factor) {
  if (!factor.usable() || column_gain(factor) < kLeastGain) return {};
  const std::vector<double> logs = log_lengths(factor);
  const double middle = means_of(factor, logs).logs;
  std::vector<int8_t> classes(logs.size(), 0);
  for (size_t column = 0; column < logs.size(); ++column) {
    if (factor.dead[column] != 0) continue;
    const auto nearest = std::lround(kStepClassesAnOctave * (middle - logs[column]));
    classes[column] = static_cast<int8_t>(std::clamp<int64_t>(nearest, -kMostColumnClass, kMostColumnClass));
  }
  return classes;
}

// H⁻¹ = UᵀU; of inputs x⊙f the inverse is (U/f)ᵀ(U/f), columns divided.
void take_column_steps(GptqFactor& factor) {
  factor.columns = column_classes(factor);
  if (factor.columns.empty()) return;
  std::vector<float> factors;
  for (const int32_t column : factor.order) factors.push_back(step_factor(factor.columns[static_cast<size_t>(column)]));
  for (int64_t i = 0; i < factor.side; ++i) {
    float* row = factor.upper.data() + i * factor.side;
    for (int64_t j = i; j < factor.side; ++j) row[j] /= factors[static_cast<size_t>(j)];
  }
  factor.number = new_factor_number();
}

std::vector<int8_t> row_classes(std::span<const float> dependence) {
  double mean = 0, logs = 0;
  for (const float d : dependence) {
    if (!(d > 0)) return {};
    mean += static_cast<double>(d) / static_cast<double>(dependence.size());
    logs += std::log2(static_cast<double>(d)) / static_cast<double>(dependence.size());
  }
  if (dependence.empty() || 0.5 * (std::log2(mean) - logs) < kLeastGain) return {};
  std::vector<int8_t> classes;
  for (const float d : dependence) {
    const auto nearest = std::lround(kStepClassesAnOctave * 0.5 * (logs - std::log2(static_cast<double>(d))));
    classes.push_back(static_cast<int8_t>(std::clamp<int64_t>(nearest, -kMostRowClass, kMostRowClass)));
  }
  return classes;
}

DividedWeight::DividedWeight(MatrixView w, std::span<const int8_t> rows, std::span<const int8_t> columns, ThreadPool& pool)
    : whole_(w) {
  if (rows.empty() && columns.empty()) return;
  const std::vector<float> of_rows = step_factors(rows), of_columns = step_factors(columns);
  divided_.resize(static_cast<size_t>(w.count()));
  pool.parallel_for(w.rows, [&](int64_t row) {
    const auto at = static_cast<size_t>(row * w.cols);
    const float own = of_rows.empty() ? 1.0F : of_rows[static_cast<size_t>(row)];
    for (size_t j = 0; j < static_cast<size_t>(w.cols); ++j)
      divided_[at + j] = w.data[at + j] / (of_columns.empty() ? own : own * of_columns[j]);
  });
}

}  // namespace fairway
