#include "quant/column_steps.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "quant/gptq.h"

namespace fairway {
namespace {

constexpr double kLeastGain = 0.02;  // bits a weight: a class takes about two bits, of columns with a hundred weights or more

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

float column_factor(int8_t column_class) {
  constexpr std::array<float, kColumnClassesAnOctave> kParts{1.0F, 1.18920712F, 1.41421356F, 1.68179283F};
  const int octave = column_class >= 0 ? column_class / kColumnClassesAnOctave
                                       : -((kColumnClassesAnOctave - 1 - column_class) / kColumnClassesAnOctave);
  return std::ldexp(kParts[static_cast<size_t>(column_class - octave * kColumnClassesAnOctave)], octave);
}

std::vector<float> column_factors(std::span<const int8_t> classes) {
  std::vector<float> out(classes.size());
  std::transform(classes.begin(), classes.end(), out.begin(), column_factor);
  return out;
}

double column_gain(const GptqFactor& factor) {
  const Means means = means_of(factor, log_lengths(factor));
  return means.squares > 0 ? 0.5 * std::log2(means.squares) - means.logs : 0;
}

std::vector<int8_t> column_classes(const GptqFactor& factor) {
  if (!factor.usable() || column_gain(factor) < kLeastGain) return {};
  const std::vector<double> logs = log_lengths(factor);
  const double middle = means_of(factor, logs).logs;
  std::vector<int8_t> classes(logs.size(), 0);
  for (size_t column = 0; column < logs.size(); ++column) {
    if (factor.dead[column] != 0) continue;
    const auto nearest = std::lround(kColumnClassesAnOctave * (middle - logs[column]));
    classes[column] = static_cast<int8_t>(std::clamp<int64_t>(nearest, -kMostColumnClass, kMostColumnClass));
  }
  return classes;
}

// H⁻¹ = UᵀU; of inputs x⊙f the inverse is (U/f)ᵀ(U/f), columns divided.
void take_column_steps(GptqFactor& factor) {
  factor.columns = column_classes(factor);
  if (factor.columns.empty()) return;
  for (int64_t j = 0; j < factor.side; ++j) {
    const float f = column_factor(factor.columns[static_cast<size_t>(factor.order[static_cast<size_t>(j)])]);
    for (int64_t i = 0; i <= j; ++i) factor.upper[static_cast<size_t>(i * factor.side + j)] /= f;
  }
}

DividedWeight::DividedWeight(MatrixView w, const GptqFactor* factor, ThreadPool& pool) : whole_(w) {
  if (factor == nullptr || factor->columns.empty()) return;
  const std::vector<float> factors = column_factors(factor->columns);
  divided_.resize(static_cast<size_t>(w.count()));
  pool.parallel_for(w.rows, [&](int64_t row) {
    const auto at = static_cast<size_t>(row * w.cols);
    for (size_t j = 0; j < factors.size(); ++j) divided_[at + j] = w.data[at + j] / factors[j];
  });
}

}  // namespace fairway
