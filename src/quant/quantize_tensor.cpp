// One tensor: its scales, its integers, and what they cost.
#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "base/half.h"
#include "base/trellis.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

struct Candidate {
  HalfScales scales;
  std::string rule;
};

// The scales to try; the best of several is taken.
std::vector<Candidate> candidates(const TensorPlan& plan, const GridSetting& setting, const QuantRecipe& quant,
                                  ThreadPool& pool, const GptqFactor* factor, std::span<const float> dependence) {
  if (plan.role == QuantRole::gate) return {{absmax_scales(plan.weight, setting.bits, pool), "absmax"}};
  if (setting.step > 0) {
    const std::vector<int8_t> rows = row_classes(dependence), columns = factor ? factor->columns : std::vector<int8_t>{};
    const DividedWeight w(plan.weight, rows, columns, pool);
    const int most = setting.trellis ? kTrellisLevel : largest_level(8);
    return {{shared_step_scales(w.view(), setting.step, step_factors(rows), pool, most),
             fmt::format("{} {:.4g}", setting.trellis ? "trellis" : "step", setting.step)}};
  }
  if (quant.scale == ScaleRule::percentile) {
    std::vector<Candidate> list;
    const auto add = [&](double percentile) {
      list.push_back(
          {percentile_scales(plan.weight, percentile, setting.bits, pool), fmt::format("percentile {}", percentile)});
    };
    if (!plan.matrix())
      add(kTablePercentile);
    else if (quant.rule == QuantRule::rtn)
      add(1.0);
    else
      for (const double percentile : kClipPercentiles) add(percentile);
    return list;
  }
  if (quant.scale == ScaleRule::hessian_sdclip && factor != nullptr)
    return {{hessian_sdclip_scales(plan.weight, {setting.k, quant.clip.lambda, factor->diagonal}, setting.bits, pool),
             fmt::format("hessian_sdclip {}", setting.k)}};
  return {{sdclip_scales(plan.weight, setting.k, setting.bits, pool), fmt::format("sdclip {}", setting.k)}};
}

QuantizedPart in_halves(const TensorPlan& plan) {
  QuantizedPart part;
  part.tensor.halves.resize(static_cast<size_t>(plan.weight.count()));
  double squares = 0;
  for (size_t i = 0; i < part.tensor.halves.size(); ++i) {
    part.tensor.halves[i] = to_half(plan.weight.data[i]);
    const double error = static_cast<double>(plan.weight.data[i]) - static_cast<double>(from_half(part.tensor.halves[i]));
    squares += error * error;
  }
  part.report.mean_square = squares / static_cast<double>(plan.weight.count());
  part.report.scale_rule = "half";
  return part;
}

// Whether GPTQ applies: to the layers' matrices, to the token embedding where the scale rule is not the percentile one, and to
// tables whose gradients were measured.
bool wants_gptq(const TensorPlan& plan, const QuantRecipe& quant, const Hessian* hessian) {
  return quant.rule == QuantRule::gptq &&
         (plan.matrix() || (plan.role == QuantRole::token && quant.scale != ScaleRule::percentile) ||
          (plan.role == QuantRole::table && plan.point.empty() && hessian != nullptr));
}

struct Attempt {
  OpRunner& runner;
  const Hessian* hessian = nullptr;
  const GptqFactor* factor = nullptr;  // null: plain rounding
  bool by_hessian = false;
  std::span<const float> dependence{};  // of the loss on each row
  bool trellis = false;
};

struct Rounded {
  std::vector<int8_t> q;
  double squares = 0, loss = 0, counted = 0;
};

double counted(std::span<const double> rows, std::span<const float> dependence) {
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) sum += rows[i] * (dependence.empty() ? 1.0 : static_cast<double>(dependence[i]));
  return sum;
}

Rounded round(const TensorPlan& plan, const Attempt& how, const HalfScales& scales, int bits) {
  Rounded rounded;
  if (how.factor != nullptr) {
    GptqResult result = gptq(how.runner, plan.weight, scales, bits, *how.factor, how.trellis);
    rounded.q = std::move(result.q);
    rounded.loss = result.loss;
    rounded.counted = counted(result.row_losses, how.dependence);
  } else {
    rounded.q = how.trellis ? gptq(how.runner, plan.weight, scales, bits, plain_factor(plan.weight.cols), true).q
                            : round_to_grid(plan.weight, scales, bits, how.runner.pool());
    if (how.hessian != nullptr) {
      const std::vector<float> error = error_of(plan.weight, rounded.q, scales, how.runner.pool());
      rounded.loss = hessian_loss(how.runner, {error.data(), plan.weight.rows, plan.weight.cols}, *how.hessian);
    }
  }
  const std::vector<float> columns = how.factor != nullptr ? step_factors(how.factor->columns) : std::vector<float>{};
  const std::vector<double> squares = squared_errors(plan.weight, rounded.q, scales, how.runner.pool(), columns);
  rounded.squares = std::accumulate(squares.begin(), squares.end(), 0.0);
  if (how.factor == nullptr) rounded.counted = how.hessian != nullptr ? rounded.loss : counted(squares, how.dependence);
  return rounded;
}

// Every candidate tried, the best kept: by the Hessian-weighted error where the recipe says so, else by the plain one.
void take_best(const TensorPlan& plan, const Attempt& how, std::vector<Candidate> list, QuantizedPart& part) {
  double best = std::numeric_limits<double>::infinity();
  for (Candidate& candidate : list) {
    Rounded rounded = round(plan, how, candidate.scales, part.tensor.bits);
    const double score = how.by_hessian ? rounded.loss : rounded.squares;
    if (!(score < best) && best != std::numeric_limits<double>::infinity()) continue;
    best = score;
    part.tensor.q = std::move(rounded.q);
    part.tensor.scale = std::move(candidate.scales);
    part.report.scale_rule = candidate.rule;
    part.report.mean_square = rounded.squares / static_cast<double>(plan.weight.count());
    part.report.loss = rounded.loss;
    part.report.counted = rounded.counted;
  }
}

}  // namespace

FactorCache::FactorCache(OpRunner& runner, const HessianStore* hessians, const QuantRecipe& quant, Steps steps,
                         const TensorMoments* moments)
    : runner_(&runner), hessians_(hessians), moments_(moments), damping_{quant.damping, quant.extra_damping}, steps_(steps) {}

const Hessian* FactorCache::hessian(const TensorPlan& plan) const {
  const Hessian* found = hessians_ != nullptr && !plan.point.empty() ? hessians_->find(plan.point) : nullptr;
  if (moments_ != nullptr && plan.point.empty())
    if (const auto moment = moments_->find(plan.name()); moment != moments_->end()) found = &moment->second.columns;
  return found != nullptr && found->side == plan.weight.cols ? found : nullptr;
}

const GptqFactor* FactorCache::factor(const TensorPlan& plan) {
  const Hessian* source = hessian(plan);
  if (source == nullptr) return nullptr;
  const auto [at, fresh] = factors_.try_emplace(plan.point.empty() ? plan.name() : plan.point);
  if (fresh) {
    auto made = inherited_.extract(at->first);
    at->second = made.empty() ? factorize(*runner_, *source, damping_) : std::move(made.mapped());
  }
  if (fresh && steps_ == Steps::by_column && (plan.matrix() || plan.point.empty())) take_column_steps(at->second);
  return &at->second;
}

QuantizedPart quantize_tensor(const TensorPlan& plan, const GridSetting& setting, const QuantRecipe& quant, OpRunner& runner,
                              FactorCache& factors) {
  QuantizedPart part = plan.integers ? QuantizedPart{} : in_halves(plan);
  TensorReport& report = part.report;
  part.tensor.bank = plan.bank;
  part.tensor.slice = plan.slice;
  part.tensor.rows = plan.weight.rows;
  part.tensor.cols = plan.weight.cols;
  report.name = plan.name();
  if (!plan.integers) return part;
  part.tensor.coding = report.coding = TensorCoding::integer_rows;
  part.tensor.bits = report.bits = setting.bits;
  part.tensor.trellis = setting.trellis;
  Attempt how{.runner = runner, .hessian = factors.hessian(plan), .trellis = setting.trellis};
  if (wants_gptq(plan, quant, how.hessian)) {
    how.factor = factors.factor(plan);
    if (how.factor == nullptr) report.fallback = "it has no Hessian";
    if (how.factor != nullptr && !how.factor->usable()) {
      report.damping_retries = how.factor->retries;
      report.fallback =
          fmt::format("its Hessian is not positive definite even after {} tenfold dampings", report.damping_retries);
      how.factor = nullptr;
    }
  }
  how.dependence = plan.dependence;
  how.by_hessian = quant.choice == ClipChoice::hessian && how.hessian != nullptr;
  report.weighted = how.hessian != nullptr;
  report.gptq = how.factor != nullptr;
  if (how.factor != nullptr) {
    report.damping_retries = how.factor->retries;
    part.tensor.columns = how.factor->columns;
  }
  take_best(plan, how, candidates(plan, setting, quant, runner.pool(), how.factor, how.dependence), part);
  report.entropy = entropy_of(part.tensor.q, setting.trellis) / static_cast<double>(plan.weight.count());
  return part;
}

void measure(const TensorPlan& plan, const QuantizedTensor& tensor, OpRunner& runner, const Hessian* hessian,
             TensorReport& report) {
  const MatrixView w = plan.weight;
  std::vector<float> error(static_cast<size_t>(w.count()));
  dequantize(tensor, error);
  double squares = 0;
  for (size_t i = 0; i < error.size(); ++i) {
    error[i] = w.data[i] - error[i];
    squares += static_cast<double>(error[i]) * static_cast<double>(error[i]);
  }
  report.mean_square = squares / static_cast<double>(w.count());
  if (hessian != nullptr) report.loss = hessian_loss(runner, {error.data(), w.rows, w.cols}, *hessian);
  report.counted = hessian != nullptr ? report.loss : squares;
  report.entropy = entropy_of(tensor.q, tensor.trellis) / static_cast<double>(w.count());
}

}  // namespace fairway
