#include "quant/gptq.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/half.h"
#include "base/trellis.h"
#include "quant/quantized_model.h"

namespace fairway {
namespace {

constexpr int64_t kMostStacked = 1 << 24;  // weights that are rounded at once

Tensor view(std::vector<float>& values, int64_t rows, int64_t cols) {
  return make_view(values.data(), {{rows, cols}, DType::f32});
}
Tensor view(std::vector<double>& values) {
  return make_view(values.data(), {{static_cast<int64_t>(values.size())}, DType::f64});
}

// Dead columns, damping and the order of columns; returns the Hessian in that order (lower triangle), not yet damped.
std::vector<double> prepare(ThreadPool& pool, const Hessian& hessian, const Damping& damping, GptqFactor& factor,
                            double& step) {
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
  pool.parallel_for(n, [&](int64_t row_in_order) {
    const auto i = static_cast<size_t>(row_in_order);
    const int32_t row = factor.order[i];
    for (size_t j = 0; j < i; ++j) ordered[i * count + j] = hessian.at(row, factor.order[j]);
    ordered[i * count + i] = factor.diagonal[static_cast<size_t>(row)];
  });
  return ordered;
}

// Where a weight is rounded: `work` becomes the integers, `losses` are added to.
struct GptqMemory {
  std::vector<float> own_work, own_steps;
  std::vector<double> own_losses;
  DeviceGptq::Memory at;

  GptqMemory(OpRunner& runner, const DeviceGptq::Form& form) {
    if (DeviceGptq* device = runner.device_gptq()) {
      at = device->memory(form);
      return;
    }
    own_work.resize(static_cast<size_t>(form.rows * form.cols));
    own_steps.resize(static_cast<size_t>(form.rows));
    own_losses.resize(static_cast<size_t>(form.rows));
    at = {own_work, own_steps, own_losses};
  }
};

void quantize_blocks(OpRunner& runner, const DeviceGptq::Form& form, const DeviceGptq::Memory& at, const GptqFactor& factor,
                     const OutputFactor* outputs) {
  std::vector<float> error(static_cast<size_t>(form.rows * form.block));
  const auto square = [](const std::vector<float>& values, int64_t side) {  // only read
    return make_view(const_cast<float*>(values.data()), {{side, side}, DType::f32});
  };
  for (int64_t begin = 0; begin < form.cols; begin += form.block)
    runner.run(
        GptqBlock{
            .begin = begin, .end = std::min(begin + form.block, form.cols), .levels = form.levels, .trellis = form.trellis},
        {make_view(at.work.data(), {{form.rows, form.cols}, DType::f32}), square(factor.upper, form.cols),
         make_view(at.steps.data(), {{form.rows}, DType::f32}), view(error, form.rows, form.block),
         make_view(at.losses.data(), {{form.rows}, DType::f64}),
         outputs != nullptr ? square(outputs->upper, outputs->side) : Tensor{}});
}

// One weight with several scales, below each other.
class StackedGptq {
 public:
  StackedGptq(OpRunner& runner, MatrixView w, const Rounding& how, const GptqFactor& factor)
      : runner_(runner), w_(w), how_(how), factor_(factor), original_(static_cast<size_t>(w.count())), factors_(cols(), 1.0F) {
    for (size_t j = 0; j < cols() && !factor.columns.empty(); ++j)
      factors_[j] = step_factor(factor.columns[static_cast<size_t>(factor.order[j])]);
    runner.pool().parallel_for(w.rows, [&](int64_t row) {
      const size_t at = static_cast<size_t>(row) * cols();
      for (size_t j = 0; j < cols(); ++j) {
        const auto from = static_cast<size_t>(factor.order[j]);
        original_[at + j] = factor.dead[from] != 0 ? 0.0F : w.data[at + from] / factors_[j];
      }
    });
  }

  void run(std::span<const HalfScales* const> scales, std::vector<GptqResult>& results) {
    const int32_t most = largest_level(how_.bits);
    const DeviceGptq::Form form{.rows = static_cast<int64_t>(scales.size()) * w_.rows,
                                .cols = w_.cols,
                                .block = std::min(kGptqBlock, w_.cols),
                                .levels = how_.trellis ? std::min(most, kTrellisLevel) : most,
                                .trellis = how_.trellis,
                                .outputs = how_.outputs != nullptr ? w_.rows : 0};
    const GptqMemory memory(runner_, form);
    runner_.pool().parallel_for(form.rows, [&](int64_t row) {
      const auto at = static_cast<size_t>(row), own = static_cast<size_t>(row % w_.rows);
      std::copy_n(original_.data() + own * cols(), cols(), memory.at.work.data() + at * cols());
      memory.at.steps[at] = from_half((*scales[static_cast<size_t>(row / w_.rows)])[own]);
      memory.at.losses[at] = 0;
    });
    if (DeviceGptq* device = runner_.device_gptq())
      device->quantize(
          form, {factor_.upper, factor_.number},
          how_.outputs != nullptr ? DeviceGptq::Factor{how_.outputs->upper, how_.outputs->number} : DeviceGptq::Factor{});
    else
      quantize_blocks(runner_, form, memory.at, factor_, how_.outputs);
    const size_t first = results.size();
    for (size_t n = 0; n < scales.size(); ++n) {
      GptqResult& result = results.emplace_back();
      result.q.resize(original_.size());
      result.row_losses.resize(static_cast<size_t>(w_.rows));
    }
    runner_.pool().parallel_for(form.rows, [&](int64_t row) {
      take_row(memory.at, static_cast<size_t>(row), static_cast<size_t>(row % w_.rows),
               results[first + static_cast<size_t>(row / w_.rows)]);
    });
    if (how_.outputs != nullptr)
      runner_.pool().parallel_for(static_cast<int64_t>(scales.size()), [&](int64_t n) {
        undamp(memory.at, static_cast<size_t>(n * w_.rows), results[first + static_cast<size_t>(n)]);
      });
    for (size_t n = first; n < results.size(); ++n)
      for (size_t row = 0; row < results[n].row_losses.size(); ++row)
        results[n].loss += results[n].row_losses[row] * (how_.outputs ? static_cast<double>(how_.outputs->counts[row]) : 1.0);
  }

 private:
  size_t cols() const { return static_cast<size_t>(w_.cols); }
  // w − s·q, in the factor's order.
  double delta(const DeviceGptq::Memory& at, size_t stacked, size_t row, size_t j) const {
    const float q = at.work[stacked * cols() + j];
    return static_cast<double>(factors_[j]) *
           (static_cast<double>(original_[row * cols() + j]) - static_cast<double>(at.steps[stacked] * q));
  }
  // With δ = e·U and H + a·I = (UᵀU)⁻¹, Σ e² is δ·(H + a·I)·δᵀ: the part that damping added is taken off again.
  void take_row(const DeviceGptq::Memory& at, size_t stacked, size_t row, GptqResult& result) const {
    double squares = 0;
    for (size_t j = 0; j < cols(); ++j) {
      const double apart = delta(at, stacked, row, j);
      squares += apart * apart;
      result.q[row * cols() + static_cast<size_t>(factor_.order[j])] = static_cast<int8_t>(at.work[stacked * cols() + j]);
    }
    result.row_losses[row] = std::max(0.0, at.losses[stacked] - factor_.added * squares);
  }
  // The same with outputs, where Σ over a row is of what its aims were missed by: V⁻ᵀ·δ·V_ii.
  void undamp(const DeviceGptq::Memory& at, size_t first, GptqResult& result) const {
    const auto rows = static_cast<size_t>(w_.rows);
    std::vector<float> missed(rows * cols());
    for (size_t i = 0; i < rows; ++i) {
      float* own = missed.data() + i * cols();
      for (size_t j = 0; j < cols(); ++j) own[j] = static_cast<float>(delta(at, first + i, i, j));
      for (size_t k = 0; k < i; ++k) {
        const float v = how_.outputs->upper[k * rows + i] / how_.outputs->upper[k * rows + k];
        const float* above = missed.data() + k * cols();
        for (size_t j = 0; j < cols(); ++j) own[j] -= v * above[j];
      }
      double squares = 0;
      for (size_t j = 0; j < cols(); ++j) squares += static_cast<double>(own[j]) * static_cast<double>(own[j]);
      result.row_losses[i] = std::max(0.0, at.losses[first + i] - factor_.added * squares);
    }
  }

  OpRunner& runner_;
  MatrixView w_;
  const Rounding& how_;
  const GptqFactor& factor_;
  std::vector<float> original_, factors_;  // in the factor's order
};

}  // namespace

GptqFactor factorize(OpRunner& runner, const Hessian& hessian, const Damping& damping) {
  GptqFactor factor;
  double step = 0;
  std::vector<double> ordered = prepare(runner.pool(), hessian, damping, factor, step);
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
  factor.number = new_factor_number();
  return factor;
}

uint64_t new_factor_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
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
  factor.number = new_factor_number();
  return factor;
}

GptqResult gptq(OpRunner& runner, MatrixView w, const HalfScales& scales, const Rounding& how, const GptqFactor& factor) {
  const HalfScales* const only = &scales;
  return std::move(gptq(runner, w, std::span(&only, 1), how, factor)[0]);
}

std::vector<GptqResult> gptq(OpRunner& runner, MatrixView w, std::span<const HalfScales* const> scales, const Rounding& how,
                             const GptqFactor& factor) {
  FAIRWAY_ASSERT(factor.usable() && factor.side == w.cols, "GPTQ needs the factor of this weight's inputs");
  FAIRWAY_ASSERT(how.outputs == nullptr || how.outputs->side == w.rows, "GPTQ needs the factor of this weight's outputs");
  // A trellis begins anew every so many rows: below another weight it would begin elsewhere, unless it knows where one ends.
  const auto fitting = static_cast<size_t>(std::max<int64_t>(1, kMostStacked / w.count()));
  const size_t together = how.trellis && how.outputs == nullptr && w.rows % kTrellisRows != 0 ? 1 : fitting;
  StackedGptq stacked(runner, w, how, factor);
  std::vector<GptqResult> results;
  for (size_t first = 0; first < scales.size(); first += together)
    stacked.run(scales.subspan(first, std::min(together, scales.size() - first)), results);
  return results;
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
