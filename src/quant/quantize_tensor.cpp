// One tensor: its scales, its integers, and what they cost.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
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
  const OutputFactor* outputs = nullptr;
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

// Plain rounding, or a trellis without a Hessian.
Rounded rounded_alone(const TensorPlan& plan, const Attempt& how, const HalfScales& scales, int bits) {
  Rounded rounded;
  rounded.q = how.trellis ? gptq(how.runner, plan.weight, scales, {bits, true}, plain_factor(plan.weight.cols)).q
                          : round_to_grid(plan.weight, scales, bits, how.runner.pool());
  if (how.hessian != nullptr) {
    const std::vector<float> error = error_of(plan.weight, rounded.q, scales, how.runner.pool());
    rounded.loss = hessian_loss(how.runner, {error.data(), plan.weight.rows, plan.weight.cols}, *how.hessian);
  }
  return rounded;
}

// With each of the scales.
std::vector<Rounded> round_all(const TensorPlan& plan, const Attempt& how, std::span<const HalfScales* const> scales,
                               int bits) {
  std::vector<Rounded> all(scales.size());
  std::vector<GptqResult> found;
  if (how.factor != nullptr) found = gptq(how.runner, plan.weight, scales, {bits, how.trellis, how.outputs}, *how.factor);
  const std::vector<float> columns = how.factor != nullptr ? step_factors(how.factor->columns) : std::vector<float>{};
  for (size_t n = 0; n < scales.size(); ++n) {
    Rounded& rounded = all[n];
    if (how.factor != nullptr)
      rounded = {.q = std::move(found[n].q), .loss = found[n].loss, .counted = counted(found[n].row_losses, how.dependence)};
    else
      rounded = rounded_alone(plan, how, *scales[n], bits);
    const std::vector<double> squares = squared_errors(plan.weight, rounded.q, *scales[n], how.runner.pool(), columns);
    rounded.squares = std::accumulate(squares.begin(), squares.end(), 0.0);
    if (how.factor == nullptr) rounded.counted = how.hessian != nullptr ? rounded.loss : counted(squares, how.dependence);
  }
  return all;
}

// One setting's scales and what they gave: the best kept, by the Hessian-weighted error where the recipe says so, else by the
// plain one.
void take_best(const TensorPlan& plan, bool by_hessian, std::span<Candidate> list, std::span<Rounded> tried,
               QuantizedPart& part) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t n = 0; n < list.size(); ++n) {
    const double score = by_hessian ? tried[n].loss : tried[n].squares;
    if (!(score < best) && best != std::numeric_limits<double>::infinity()) continue;
    best = score;
    part.tensor.q = std::move(tried[n].q);
    part.tensor.scale = std::move(list[n].scales);
    part.report.scale_rule = list[n].rule;
    part.report.mean_square = tried[n].squares / static_cast<double>(plan.weight.count());
    part.report.loss = tried[n].loss;
    part.report.counted = tried[n].counted;
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
  if (fresh) at->second = factorize(*runner_, *source, damping_);
  if (fresh && steps_ == Steps::by_column && (plan.matrix() || plan.point.empty())) take_column_steps(at->second);
  return &at->second;
}

const OutputFactor* FactorCache::outputs(const TensorPlan& plan) {
  const auto moment = moments_ != nullptr ? moments_->find(plan.name()) : TensorMoments::const_iterator{};
  if (moments_ == nullptr || moment == moments_->end() || moment->second.outputs.side == 0) return nullptr;
  const auto [at, fresh] = outputs_.try_emplace({plan.name(), plan.every});
  if (fresh) at->second = factorize_outputs(*runner_, moment->second.outputs, plan.every);
  return at->second.usable() ? &at->second : nullptr;
}

namespace {

// How a tensor is rounded, whatever its grid; told in the report.
Attempt attempt_at(const TensorPlan& plan, const QuantRecipe& quant, OpRunner& runner, FactorCache& factors,
                   TensorReport& report) {
  Attempt how{.runner = runner, .hessian = factors.hessian(plan), .dependence = plan.dependence};
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
  if (how.factor != nullptr) how.outputs = factors.outputs(plan);
  how.by_hessian = quant.choice == ClipChoice::hessian && how.hessian != nullptr;
  report.weighted = how.hessian != nullptr;
  report.gptq = how.factor != nullptr;
  if (how.factor != nullptr) report.damping_retries = how.factor->retries;
  return how;
}

// What rounds at once: settings with as many levels, on a trellis or not. GPTQ moves weights: with a step of its own a tensor
// takes the bits that its integers turn out to need, where those are more than the setting's.
struct Together {
  int bits;
  bool trellis;
  std::vector<size_t> settings;
};
std::vector<Together> together(std::span<const GridSetting> settings, bool gptq) {
  std::vector<Together> out;
  for (size_t n = 0; n < settings.size(); ++n) {
    const int bits = settings[n].step > 0 && gptq ? 8 : settings[n].bits;
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const Together& one) { return one.bits == bits && one.trellis == settings[n].trellis; });
    if (at == out.end()) at = out.insert(at, {bits, settings[n].trellis, {}});
    at->settings.push_back(n);
  }
  return out;
}

int bits_for(std::span<const int8_t> q, int at_least) {
  int largest = 0;
  for (const int8_t level : q) largest = std::max<int>(largest, std::abs(level));
  while (largest_level(at_least) < largest) ++at_least;
  return at_least;
}

}  // namespace

QuantizedPart quantize_tensor(const TensorPlan& plan, const GridSetting& setting, const QuantRecipe& quant, OpRunner& runner,
                              FactorCache& factors) {
  return std::move(quantize_tensor(plan, std::span(&setting, 1), quant, runner, factors)[0]);
}

std::vector<QuantizedPart> quantize_tensor(const TensorPlan& plan, std::span<const GridSetting> settings,
                                           const QuantRecipe& quant, OpRunner& runner, FactorCache& factors) {
  QuantizedPart blank = plan.integers ? QuantizedPart{} : in_halves(plan);
  blank.tensor.bank = plan.bank;
  blank.tensor.slice = plan.slice;
  blank.tensor.rows = plan.weight.rows;
  blank.tensor.cols = plan.weight.cols;
  blank.report.name = plan.name();
  if (!plan.integers) return std::vector(settings.size(), blank);
  blank.tensor.coding = blank.report.coding = TensorCoding::integer_rows;
  Attempt how = attempt_at(plan, quant, runner, factors, blank.report);
  if (how.factor != nullptr) blank.tensor.columns = how.factor->columns;
  std::vector<QuantizedPart> parts(settings.size(), blank);
  for (const Together& group : together(settings, how.factor != nullptr)) {
    std::vector<std::vector<Candidate>> lists;
    std::vector<const HalfScales*> scales;
    for (const size_t n : group.settings)
      lists.push_back(candidates(plan, settings[n], quant, runner.pool(), how.factor, how.dependence));
    for (const std::vector<Candidate>& list : lists)
      for (const Candidate& candidate : list) scales.push_back(&candidate.scales);
    how.trellis = group.trellis;
    std::vector<Rounded> tried = round_all(plan, how, scales, group.bits);
    std::span<Rounded> left = tried;
    for (size_t k = 0; k < lists.size(); ++k) {
      QuantizedPart& part = parts[group.settings[k]];
      part.tensor.trellis = group.trellis;
      take_best(plan, how.by_hessian, lists[k], left.first(lists[k].size()), part);
      left = left.subspan(lists[k].size());
    }
  }
  runner.pool().parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t i) {
    const auto n = static_cast<size_t>(i);
    QuantizedPart& part = parts[n];
    part.tensor.bits = part.report.bits = bits_for(part.tensor.q, settings[n].bits);
    part.report.entropy = entropy_of(part.tensor.q, settings[n].trellis) / static_cast<double>(plan.weight.count());
  });
  return parts;
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
