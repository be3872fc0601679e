#include "analysis/rate_curves.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <map>

namespace fairway {
namespace {

constexpr std::array<double, 6> kDoublings{-3, -2, -1, 0, 0.5, 1};

// Mean of log2 of a column's mean square, over columns that are read and not zero.
double log_column_squares(MatrixView w, const GptqFactor& factor) {
  double sum = 0;
  int64_t columns = 0;
  for (int64_t j = 0; j < w.cols; ++j) {
    double squares = 0;
    for (int64_t i = 0; i < w.rows; ++i) {
      const auto x = static_cast<double>(w.data[i * w.cols + j]);
      squares += x * x;
    }
    if (squares == 0 || factor.dead[static_cast<size_t>(j)] != 0) continue;
    sum += std::log2(squares / static_cast<double>(w.rows));
    ++columns;
  }
  return sum / static_cast<double>(std::max<int64_t>(columns, 1));
}

// What columns of about the same width have in common is coded together, as artifact/lane_coder.h does.
double entropy_by_columns(std::span<const int8_t> q, int64_t rows, int64_t cols) {
  constexpr double kClassesAnOctave = 8, kClassBits = 2;
  constexpr double kLevelBits = 0.72;  // ½·log2(e): by so much a count of few lies below the entropy of their distribution
  const auto width = static_cast<size_t>(cols);
  std::vector<int64_t> squares(width, 0);
  for (size_t at = 0; at < q.size(); at += width)
    for (size_t j = 0; j < width; ++j) squares[j] += q[at + j] * q[at + j];
  std::map<int, std::vector<size_t>> classes;
  for (size_t j = 0; j < width; ++j) {
    const double octaves = 0.5 * std::log2(static_cast<double>(squares[j]) / static_cast<double>(rows));
    classes[squares[j] > 0 ? static_cast<int>(std::lround(kClassesAnOctave * octaves)) : INT_MIN].push_back(j);
  }
  double bits = kClassBits * static_cast<double>(cols);
  std::vector<int8_t> together;
  for (const auto& [octaves, columns] : classes) {
    together.clear();
    for (size_t at = 0; at < q.size(); at += width)
      for (const size_t j : columns) together.push_back(q[at + j]);
    const auto [least, most] = std::ranges::minmax(together);
    bits += entropy_of(together) + kLevelBits * (most - least);
  }
  return std::min(bits, entropy_of(q));
}

class Measurement {
 public:
  Measurement(const Recipe& recipe, const HessianStore& hessians, OpSite site)
      : runner_(site), quant_(recipe.quant), factors_(runner_, &hessians, quant_) {
    quant_.rule = QuantRule::gptq;
    quant_.scale = ScaleRule::sdclip;
  }

  bool suits(const TensorPlan& plan) {
    if (!plan.integers || plan.role == QuantRole::gate || typical_magnitude(plan.weight, runner_.pool()) == 0) return false;
    const GptqFactor* factor = factors_.factor(plan);
    return factor != nullptr && factor->usable();
  }

  RateCurve of(const TensorPlan& plan) {
    const MatrixView w = plan.weight;
    const GptqFactor& factor = *factors_.factor(plan);
    RateCurve curve{.name = plan.name(), .role = plan.role, .rows = w.rows, .cols = w.cols, .column_gain = column_gain(factor)};
    const double signal = hessian_loss(runner_, w, *factors_.hessian(plan));
    const double log_scale = log_column_squares(w, factor) + 2 * mean_log_length(factor);
    for (const double doublings : kDoublings) {
      const double step = std::exp2(doublings) * typical_magnitude(w, runner_.pool());
      const QuantizedPart part =
          quantize_tensor(plan, shared_step_setting(largest_magnitude(w.all()), step), quant_, runner_, factors_);
      const auto count = static_cast<double>(w.count());
      // As the factor sees it, with what damping added.
      const double error = part.report.loss / count + factor.added * part.report.mean_square;
      curve.points.push_back({.doublings = doublings,
                              .bits = entropy_by_columns(part.tensor.q, w.rows, w.cols) / count,
                              .error = part.report.loss / signal,
                              .bound = std::max(0.0, 0.5 * (log_scale - std::log2(error)))});
    }
    return curve;
  }

 private:
  OpRunner runner_;
  QuantRecipe quant_;
  FactorCache factors_;
};

void sum_up(RateReport& report) {
  double weights = 0;
  for (const RateCurve& curve : report.tensors) weights += static_cast<double>(curve.rows * curve.cols);
  for (const RateCurve& curve : report.tensors) {
    const double share = static_cast<double>(curve.rows * curve.cols) / weights;
    report.column_gain += share * curve.column_gain;
    report.all.resize(curve.points.size());
    for (size_t i = 0; i < curve.points.size(); ++i) {
      report.all[i].doublings = curve.points[i].doublings;
      report.all[i].bits += share * curve.points[i].bits;
      report.all[i].error += share * curve.points[i].error;
      report.all[i].bound += share * curve.points[i].bound;
    }
  }
}

}  // namespace

RateReport measure_rates(const ParamStore& weights, const Recipe& recipe, const HessianStore& hessians, OpSite site,
                         const AnalysisProgress& progress) {
  Measurement measurement(recipe, hessians, site);
  const std::vector<TensorPlan> plans = tensor_plans(weights, recipe);
  RateReport report;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (measurement.suits(plans[i])) report.tensors.push_back(measurement.of(plans[i]));
    if (progress) progress(static_cast<int64_t>(i + 1), static_cast<int64_t>(plans.size()));
  }
  sum_up(report);
  return report;
}

}  // namespace fairway
