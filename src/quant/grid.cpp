#include "quant/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/half.h"
#include "quant/quantized_model.h"

namespace fairway {
namespace {

constexpr double kDegenerate = 2;       // times k deviations: beyond this the deviation does not describe the row
constexpr double kReach = 1.05;         // of the grid beyond a row's largest weight: GPTQ moves weights
constexpr float kLargestWeight = 1e4F;  // steps of larger weights could overflow half precision

// step(row) as halves, for every row.
template <class Step>
HalfScales each_row(MatrixView w, ThreadPool& pool, const Step& step) {
  HalfScales scales(static_cast<size_t>(w.rows));
  pool.parallel_for(
      w.rows, [&](int64_t row) { scales[static_cast<size_t>(row)] = to_half(static_cast<float>(step(w.row(row), row))); });
  return scales;
}

double sdclip_step(std::span<const float> row, double k, double levels) {
  const double clip = k * unbiased_deviation(row), largest = largest_magnitude(row);
  return (largest > kDegenerate * clip ? largest : clip) / levels;
}

}  // namespace

float largest_magnitude(std::span<const float> row) {
  float largest = 0;
  for (const float w : row) largest = std::max(largest, std::abs(w));
  return largest;
}

double quantile(std::span<float> values, double fraction) {
  const double rank = fraction * static_cast<double>(values.size() - 1);
  const auto lower = static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), values.begin() + lower, values.end());
  const double below = values[static_cast<size_t>(lower)], rest = rank - static_cast<double>(lower);
  if (rest == 0) return below;
  const double above = *std::min_element(values.begin() + lower + 1, values.end());
  return below + rest * (above - below);
}

double unbiased_deviation(std::span<const float> values) {
  if (values.size() < 2) return 0;
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const float w : values) sum += w;
  for (const float w : values) squares += (w - sum / count) * (w - sum / count);
  return std::sqrt(squares / (count - 1));
}

HalfScales percentile_scales(MatrixView w, double percentile, int bits, ThreadPool& pool) {
  return each_row(w, pool, [&](std::span<const float> row, int64_t) {
    std::vector<float> magnitudes(row.size());
    std::transform(row.begin(), row.end(), magnitudes.begin(), [](float x) { return std::abs(x); });
    return std::max(quantile(magnitudes, percentile), kLeastClip) / largest_level(bits);
  });
}

HalfScales sdclip_scales(MatrixView w, double k, int bits, ThreadPool& pool) {
  return each_row(w, pool, [&](std::span<const float> row, int64_t) { return sdclip_step(row, k, largest_level(bits)); });
}

HalfScales hessian_sdclip_scales(MatrixView w, const HessianClip& clip, int bits, ThreadPool& pool) {
  FAIRWAY_ASSERT(static_cast<int64_t>(clip.diagonal.size()) == w.cols, "one diagonal entry per column");
  constexpr double kLeast = 1e-8;
  double mean = 0;
  for (const double entry : clip.diagonal) mean += std::max(entry, kLeast);
  mean /= static_cast<double>(w.cols);
  std::vector<double> importance(static_cast<size_t>(w.rows));
  pool.parallel_for(w.rows, [&](int64_t row) {
    double sum = 0;
    for (int64_t j = 0; j < w.cols; ++j)
      sum += std::abs(static_cast<double>(w.row(row)[static_cast<size_t>(j)])) *
             std::max(clip.diagonal[static_cast<size_t>(j)], kLeast) / mean;
    importance[static_cast<size_t>(row)] = sum / static_cast<double>(w.cols);
  });
  double average = 0;
  for (const double value : importance) average += value / static_cast<double>(w.rows);
  return each_row(w, pool, [&](std::span<const float> row, int64_t index) {
    const double ratio = average > 0 ? importance[static_cast<size_t>(index)] / average : 1;
    return sdclip_step(row, clip.k * (1 + clip.lambda * (ratio - 1)), largest_level(bits));
  });
}

HalfScales absmax_scales(MatrixView w, int bits, ThreadPool& pool) {
  return each_row(w, pool, [&](std::span<const float> row, int64_t) {
    return static_cast<double>(largest_magnitude(row)) / largest_level(bits);
  });
}

HalfScales shared_step_scales(MatrixView w, double step, std::span<const float> factors, ThreadPool& pool, int most) {
  return each_row(w, pool, [&](std::span<const float> row, int64_t index) {
    const double largest = largest_magnitude(row);
    const double factor = factors.empty() ? 1.0 : static_cast<double>(factors[static_cast<size_t>(index)]);
    return largest > 0 ? factor * std::max(step, kReach * largest / most) : 0;
  });
}

double typical_magnitude(MatrixView w, ThreadPool& pool) {
  std::vector<double> squares(static_cast<size_t>(w.rows));
  pool.parallel_for(w.rows, [&](int64_t row) {
    double& sum = squares[static_cast<size_t>(row)];
    for (const float value : w.row(row)) sum += static_cast<double>(value) * static_cast<double>(value);
  });
  double logs = 0;
  int64_t rows = 0;
  for (const double sum : squares) {
    if (!(sum > 0)) continue;
    logs += 0.5 * std::log(sum / static_cast<double>(w.cols));
    ++rows;
  }
  return rows > 0 ? std::exp(logs / static_cast<double>(rows)) : 0;
}

std::vector<int8_t> round_to_grid(MatrixView w, const HalfScales& scales, int bits, ThreadPool& pool) {
  std::vector<int8_t> q(static_cast<size_t>(w.count()));
  const double levels = largest_level(bits);
  pool.parallel_for(w.rows, [&](int64_t row) {
    const double step = from_half(scales[static_cast<size_t>(row)]);
    if (!(step > 0)) return;
    const std::span<const float> from = w.row(row);
    for (size_t j = 0; j < from.size(); ++j)
      q[static_cast<size_t>(row * w.cols) + j] =
          static_cast<int8_t>(std::clamp(std::nearbyint(static_cast<double>(from[j]) / step), -levels, levels));
  });
  return q;
}

std::vector<double> squared_errors(MatrixView w, std::span<const int8_t> q, const HalfScales& scales, ThreadPool& pool,
                                   std::span<const float> columns) {
  std::vector<double> sums(static_cast<size_t>(w.rows));
  pool.parallel_for(w.rows, [&](int64_t row) {
    const float step = from_half(scales[static_cast<size_t>(row)]);
    double sum = 0;
    for (int64_t j = 0, i = row * w.cols; j < w.cols; ++j, ++i) {
      const double factor = columns.empty() ? 1.0 : static_cast<double>(columns[static_cast<size_t>(j)]);
      const double error =
          static_cast<double>(w.data[i]) - factor * static_cast<double>(step * static_cast<float>(q[static_cast<size_t>(i)]));
      sum += error * error;
    }
    sums[static_cast<size_t>(row)] = sum;
  });
  return sums;
}

double squared_error(MatrixView w, std::span<const int8_t> q, const HalfScales& scales, ThreadPool& pool,
                     std::span<const float> columns) {
  double total = 0;
  for (const double sum : squared_errors(w, q, scales, pool, columns)) total += sum;
  return total;
}

void require_finite(MatrixView w, std::string_view name) {
  for (int64_t i = 0; i < w.count(); ++i) {
    const float value = w.data[i];
    if (std::abs(value) <= kLargestWeight) continue;
    throw InputError(
        fmt::format("{}: the weight at row {}, column {} is {}; quantizing needs finite weights of magnitude at most {}", name,
                    i / w.cols, i % w.cols, value, kLargestWeight));
  }
}

}  // namespace fairway
