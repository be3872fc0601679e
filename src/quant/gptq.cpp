#include "quant/gptq.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/half.h"
#include "base/trellis.h"
#include "quant/quantized_model.h"

namespace fairway {
namespace {

Tensor view(std::vector<float>& values, int64_t rows, int64_t cols) {
  return make_view(values.data(), {{rows, cols}, DType::f32});
}
Tensor view(std::vector<double>& values) {
  return make_view(values.data(), {{static_cast<int64_t>(values.size())}, DType::f64});
}

// Dead columns, damping and the order of columns; returns the Hessian in that order (lower triangle), not yet damped.
std::vector<double> prepare(const Hessian& hessian, const Damping& damping, GptqFactor& factor, double& step) {
  const int64_t n = hessian.side;
  const auto count = static_cast<size_t>(n);
  const double extra = damping.extra > 0 ? damping.extra * std::max(hessian.trace() / static_cast<double>(n), 1e-6) : 0;
  factor.side = n;
  factor.dead.assign(count, 0);
  factor.diagonal.resize(count);
  double mean = 0;
  for (size_t j = 0; j < count; ++j) {
    const double entry = hessian.at(static_cast<int64_t>(j), static_cast<int64_t>(j)) + extra;
    factor.dead[j] = entry == 0 ? 1 : 0;
    factor.diagonal[j] = entry == 0 ? 1 : entry;
    mean += factor.diagonal[j] / static_cast<double>(n);
  }
  step = damping.share * mean;
  factor.added = extra;
  factor.order.resize(count);
  std::iota(factor.order.begin(), factor.order.end(), 0);
  std::stable_sort(factor.order.begin(), factor.order.end(), [&](int32_t a, int32_t b) {
    return factor.diagonal[static_cast<size_t>(a)] > factor.diagonal[static_cast<size_t>(b)];
  });
  std::vector<double> ordered(count * count);
  for (size_t i = 0; i < count; ++i) {
    const int32_t row = factor.order[i];
    for (size_t j = 0; j < i; ++j) ordered[i * count + j] = hessian.at(row, factor.order[j]);
    ordered[i * count + i] = factor.diagonal[static_cast<size_t>(row)];
  }
  return ordered;
}

void quantize_blocks(OpRunner& runner, const DeviceGptq::Weight& w) {
  std::vector<float> error(static_cast<size_t>(w.rows * w.block));
  const auto only_read = [](std::span<const float> values, Shape shape) {
    return make_view(const_cast<float*>(values.data()), {shape, DType::f32});
  };
  for (int64_t begin = 0; begin < w.cols; begin += w.block)
    runner.run(GptqBlock{.begin = begin, .end = std::min(begin + w.block, w.cols), .levels = w.levels},
               {make_view(w.work.data(), {{w.rows, w.cols}, DType::f32}), only_read(w.upper, {w.cols, w.cols}),
                only_read(w.steps, {w.rows}), view(error, w.rows, w.block), make_view(w.losses.data(), {{w.rows}, DType::f64}),
                w.rates.empty() ? Tensor{} : only_read(w.rates, {w.cols, w.levels + 1})});
}

}  // namespace

GptqFactor factorize(OpRunner& runner, const Hessian& hessian, const Damping& damping) {
  GptqFactor factor;
  double step = 0;
  std::vector<double> ordered = prepare(hessian, damping, factor, step);
  const int64_t n = hessian.side;
  factor.upper.resize(static_cast<size_t>(n * n));
  const auto works = [&](double added) {
    if (DeviceGptq* device = runner.device_gptq()) return device->factorize(ordered, n, added, factor.upper);
    std::vector<double> status(1);
    runner.run(CholeskyInverse{.damping = added},
               {make_view(ordered.data(), {{n, n}, DType::f64}), view(factor.upper, n, n), view(status)});
    return status[0] == 1;
  };
  bool found = false;
  for (factor.retries = 0; factor.retries <= kDampingRetries; ++factor.retries, step *= 10)
    if (found = works(step); found) break;
  if (!found) {
    factor.retries = kDampingRetries;
    factor.upper.clear();
    return factor;
  }
  factor.added += step;
  for (double& entry : factor.diagonal) entry += step;
  return factor;
}

GptqFactor plain_factor(int64_t side) {
  const auto count = static_cast<size_t>(side);
  GptqFactor factor{.side = side,
                    .order = std::vector<int32_t>(count),
                    .dead = std::vector<uint8_t>(count, 0),
                    .diagonal = std::vector<double>(count, 1.0),
                    .upper = std::vector<float>(count * count, 0.0F)};
  std::iota(factor.order.begin(), factor.order.end(), 0);
  for (size_t j = 0; j < count; ++j) factor.upper[j * count + j] = 1;
  return factor;
}

GptqResult gptq(OpRunner& runner, MatrixView w, const HalfScales& scales, int bits, const GptqFactor& factor, bool trellis) {
  FAIRWAY_ASSERT(factor.usable() && factor.side == w.cols, "GPTQ needs the factor of this weight's inputs");
  const int64_t block = std::min(kGptqBlock, w.cols);
  const auto cols = static_cast<size_t>(w.cols);
  std::vector<float> original(static_cast<size_t>(w.count())), steps(scales.size()), factors(cols, 1.0F);  // in that order
  for (size_t j = 0; j < cols && !factor.columns.empty(); ++j)
    factors[j] = step_factor(factor.columns[static_cast<size_t>(factor.order[j])]);
  runner.pool().parallel_for(w.rows, [&](int64_t row) {
    const size_t at = static_cast<size_t>(row) * cols;
    for (size_t j = 0; j < cols; ++j) {
      const auto from = static_cast<size_t>(factor.order[j]);
      original[at + j] = factor.dead[from] != 0 ? 0.0F : w.data[at + from] / factors[j];
    }
    steps[static_cast<size_t>(row)] = from_half(scales[static_cast<size_t>(row)]);
  });
  std::vector<float> work = original;
  std::vector<double> losses(static_cast<size_t>(w.rows), 0.0);
  const int32_t levels = trellis ? std::min(largest_level(bits), kTrellisLevel) : largest_level(bits);
  // No level costs more than another. What bits cost would pull all weights towards zero, by 2 to 6 % at three bits, in every
  // layer alike, for 2 % less of the expected damage.
  std::vector<float> rates;
  if (trellis) rates.assign(cols * (static_cast<size_t>(levels) + 1), 0.0F);
  const DeviceGptq::Weight weight{w.rows, w.cols, block, levels, factor.upper, steps, rates, work, losses};
  if (DeviceGptq* device = runner.device_gptq())
    device->quantize(weight);
  else
    quantize_blocks(runner, weight);
  GptqResult result;
  result.q.resize(original.size());
  // With δ = e·U and H + a·I = (UᵀU)⁻¹, Σ e² is δ·(H + a·I)·δᵀ: the part that damping added is taken off again.
  runner.pool().parallel_for(w.rows, [&](int64_t row) {
    const size_t at = static_cast<size_t>(row) * cols;
    double squares = 0;
    for (size_t j = 0; j < cols; ++j) {
      const float q = work[at + j];
      const double delta = static_cast<double>(factors[j]) *
                           (static_cast<double>(original[at + j]) - static_cast<double>(steps[static_cast<size_t>(row)] * q));
      squares += delta * delta;
      result.q[at + static_cast<size_t>(factor.order[j])] = static_cast<int8_t>(q);
    }
    losses[static_cast<size_t>(row)] = std::max(0.0, losses[static_cast<size_t>(row)] - factor.added * squares);
  });
  for (const double loss : losses) result.loss += loss;
  result.row_losses = std::move(losses);
  return result;
}

double hessian_loss(OpRunner& runner, MatrixView error, const Hessian& hessian) {
  FAIRWAY_ASSERT(error.cols == hessian.side, "the error has one column per input");
  const int64_t n = hessian.side;
  std::vector<double> gram(static_cast<size_t>(n * n), 0.0), rows(static_cast<size_t>(n));
  const Tensor errors = make_view(const_cast<float*>(error.data), {{error.rows, n}, DType::f32});  // only read
  runner.run(HessianAccumulate{}, {make_view(gram.data(), {{n, n}, DType::f64}), errors});
  runner.pool().parallel_for(n, [&](int64_t i) {
    const auto at = static_cast<size_t>(i * n);
    double sum = 0;
    for (int64_t j = 0; j < i; ++j) sum += 2 * gram[at + static_cast<size_t>(j)] * hessian.values[at + static_cast<size_t>(j)];
    rows[static_cast<size_t>(i)] = sum + gram[at + static_cast<size_t>(i)] * hessian.at(i, i);
  });
  return std::accumulate(rows.begin(), rows.end(), 0.0);
}

std::vector<float> error_of(MatrixView w, std::span<const int8_t> q, const HalfScales& scales, ThreadPool& pool) {
  std::vector<float> error(static_cast<size_t>(w.count()));
  pool.parallel_for(w.rows, [&](int64_t row) {
    const float step = from_half(scales[static_cast<size_t>(row)]);
    for (int64_t i = row * w.cols; i < (row + 1) * w.cols; ++i)
      error[static_cast<size_t>(i)] = w.data[i] - step * static_cast<float>(q[static_cast<size_t>(i)]);
  });
  return error;
}

}  // namespace fairway
