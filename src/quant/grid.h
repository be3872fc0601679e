// The integer grids of scoring spec §4.2–4.4: int-b with levels −R … R, R = 2^(b−1) − 1, and one step per row, rounded to half
// precision before anything is quantized with it. Division is in double, halves round to even.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"

namespace fairway {

struct MatrixView {  // (rows, cols), dense
  const float* data = nullptr;
  int64_t rows = 0, cols = 0;

  std::span<const float> row(int64_t index) const { return {data + index * cols, static_cast<size_t>(cols)}; }
  std::span<const float> all() const { return {data, static_cast<size_t>(count())}; }
  int64_t count() const { return rows * cols; }
};

using HalfScales = std::vector<uint16_t>;  // one half per row; zero: the row is zero

inline constexpr std::array<double, 5> kClipPercentiles{0.999, 0.9995, 0.9999, 0.99999, 1.0};
inline constexpr double kTablePercentile = 0.9999984;  // of the token embedding and other tables under the percentile rule
inline constexpr double kLeastClip = 1.0;              // the percentile rule never clips below this

// Linear interpolation at rank fraction·(n−1) of the sorted values, whose order it changes; n > 0.
double quantile(std::span<float> values, double fraction);
float largest_magnitude(std::span<const float> values);
double unbiased_deviation(std::span<const float> values);  // 0 for fewer than two

// s = max(quantile(|w|), 1)/R.
HalfScales percentile_scales(MatrixView w, double percentile, int bits, ThreadPool& pool);
// s = k·std/R. A row whose largest weight lies beyond 2·k deviations (a constant row, one column) gets absmax/R instead.
HalfScales sdclip_scales(MatrixView w, double k, int bits, ThreadPool& pool);
// s = k·std·(1 + λ·(r − 1))/R with r = mean_j(|w_j|·a_j) over its mean over rows, a_j = H_jj/mean(H_jj); diagonal is damped.
struct HessianClip {
  double k, lambda;
  std::span<const double> diagonal;
};
HalfScales hessian_sdclip_scales(MatrixView w, const HessianClip& clip, int bits, ThreadPool& pool);
HalfScales absmax_scales(MatrixView w, int bits, ThreadPool& pool);  // s = absmax/R
// s = step for all rows, which for errors that count alike costs the fewest bits, times a row's factor where w was divided by
// it; a row whose largest weight would lie beyond the `most` levels has the step that reaches it.
HalfScales shared_step_scales(MatrixView w, double step, std::span<const float> factors, ThreadPool& pool, int most = 127);
// Geometric mean of the rows' root mean squares, without rows of zeros; 0: all are.
double typical_magnitude(MatrixView w, ThreadPool& pool);

// q = clamp(round(w/s), −R, R).
std::vector<int8_t> round_to_grid(MatrixView w, const HalfScales& scales, int bits, ThreadPool& pool);

// Σ (w − s·f·q)² of each row; without columns f is 1.
std::vector<double> squared_errors(MatrixView w, std::span<const int8_t> q, const HalfScales& scales, ThreadPool& pool,
                                   std::span<const float> columns = {});
double squared_error(MatrixView w, std::span<const int8_t> q, const HalfScales& scales, ThreadPool& pool,
                     std::span<const float> columns = {});  // of all rows, in order

// Throws InputError naming the tensor, the place and the value of a weight that is not finite, or too large for a half scale.
void require_finite(MatrixView w, std::string_view name);

}  // namespace fairway
