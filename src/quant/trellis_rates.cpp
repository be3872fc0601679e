#include "quant/trellis_rates.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fairway {
namespace {

// Half a step squared: a third (the square of a whole step over 12) less the 1.22 dB that 32 states gain.
constexpr double kError = 0.2517;
// dD/dR = -2·ln(2)·D where errors follow the rate; a little less, since the expected bits are too high where they count most.
constexpr double kBitWorth = 0.85 * 2 * std::numbers::ln2 * kError;
constexpr double kLeastWidth = 0.1, kWidthsAnOctave = 8;

// Each level stands for the two steps of the grid around it: the others are even, or odd, as it is.
std::vector<float> rates_of(double width, int levels) {
  std::vector<float> out;
  const auto beyond = [&](double x) { return 0.5 * std::erfc(x / (width * std::numbers::sqrt2)); };
  for (int level = 0; level <= levels; ++level) {
    const double share = level == 0 ? 1 - 2 * beyond(1) : beyond(level - 1) - beyond(level + 1);
    out.push_back(static_cast<float>(-kBitWorth * std::log2(std::max(share, 1e-12))));
  }
  return out;
}

}  // namespace

std::vector<float> trellis_rates(MatrixView w, std::span<const float> steps, int levels, ThreadPool& pool) {
  const auto cols = static_cast<size_t>(w.cols), rates = static_cast<size_t>(levels) + 1;
  std::vector<float> out(cols * rates);
  constexpr size_t kTogether = 64;  // columns
  pool.parallel_for(static_cast<int64_t>((cols + kTogether - 1) / kTogether), [&](int64_t part) {
    const size_t begin = static_cast<size_t>(part) * kTogether, end = std::min(begin + kTogether, cols);
    std::vector<double> squares(kTogether, 0.0);
    for (int64_t row = 0; row < w.rows; ++row) {
      const double step = steps[static_cast<size_t>(row)];
      if (!(step > 0)) continue;
      for (size_t j = begin; j < end; ++j) {
        const double x = w.row(row)[j] / step;
        squares[j - begin] += x * x;
      }
    }
    for (size_t j = begin; j < end; ++j) {
      // What is stored is narrower than what it stands for, by the error.
      const double variance = squares[j - begin] / static_cast<double>(w.rows) - kError;
      const double width = std::max(std::sqrt(std::max(variance, 0.0)), kLeastWidth);
      const std::vector<float> own =
          rates_of(std::exp2(std::round(kWidthsAnOctave * std::log2(width)) / kWidthsAnOctave), levels);
      std::copy(own.begin(), own.end(), out.begin() + static_cast<std::ptrdiff_t>(j * rates));
    }
  });
  return out;
}

}  // namespace fairway
