#include "analysis/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "analysis/spectra.h"
#include "base/error.h"
#include "quant/op_runner.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

// The percentile rule with its search for the clip and plain rounding.
QuantRecipe rounding_recipe() {
  QuantRecipe quant;
  quant.rule = QuantRule::gptq_lite;
  quant.scale = ScaleRule::percentile;
  quant.choice = ClipChoice::mse;
  return quant;
}

struct Rounded {
  std::vector<float> weights;
  double mean_square = 0;
};

// Keeps the untouched weights and puts them back.
class Originals {
 public:
  Originals(const ParamStore& params, Executor& executor)
      : live_(params.flat_values()), executor_(&executor), kept_(static_cast<size_t>(live_.numel())) {
    std::memcpy(kept_.data(), live_.data, live_.spec.bytes());
  }
  ~Originals() { restore(); }
  Originals(const Originals&) = delete;
  Originals& operator=(const Originals&) = delete;
  void restore() {
    std::memcpy(live_.data, kept_.data(), live_.spec.bytes());
    executor_->upload(live_);
  }

 private:
  Tensor live_;
  Executor* executor_;
  std::vector<float> kept_;
};

class SensitivityMeter {
 public:
  SensitivityMeter(const AnalysisInput& input, OpSite site, const std::vector<int>& bits)
      : input_(input), runner_(site), originals_(*input.weights, input.executor), rows_(silent_) {
    plans_ = tensor_plans(*input.weights, input.recipe);
    std::erase_if(plans_, [](const TensorPlan& plan) { return !plan.matrix(); });
    std::stable_sort(plans_.begin(), plans_.end(), [](const auto& a, const auto& b) { return a.role < b.role; });
    report_.bits = bits;
    for (const TensorPlan& plan : plans_)
      report_.matrices.push_back({.name = plan.name(),
                                  .role = plan.role,
                                  .layer = layer_of(plan, input.recipe.model.layers),
                                  .weights = plan.weight.count()});
    report_.layers.resize(static_cast<size_t>(input.recipe.model.layers));
    runs_ = 1 + static_cast<int64_t>(bits.size() * (plans_.size() + report_.layers.size() + 1));
  }

  SensitivityReport run() {
    base_ = losses();
    double sum = 0;
    for (const float loss : base_) sum += static_cast<double>(loss);
    report_.loss = sum / static_cast<double>(base_.size());
    for (const int bits : report_.bits) run_width(bits);
    return std::move(report_);
  }

 private:
  std::vector<float> losses() {
    std::vector<float> out;
    rows_.each([&](int64_t, int64_t count) {
      const auto nll = rows_.model().nll().first(static_cast<size_t>(count * input_.row_length));
      out.insert(out.end(), nll.begin(), nll.end());
    });
    if (input_.progress) input_.progress(++done_, runs_);
    return out;
  }

  LossChange change_with(const std::vector<Rounded>& rounded, const std::function<bool(size_t)>& chosen) {
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (!chosen(i)) continue;
      const ParamBank& bank = input_.weights->bank(plans_[i].bank);
      std::copy(rounded[i].weights.begin(), rounded[i].weights.end(), bank.value.slice(plans_[i].slice).as<float>());
    }
    input_.executor.upload(input_.weights->flat_values());
    const std::vector<float> now = losses();
    originals_.restore();
    const auto count = static_cast<double>(now.size());
    double sum = 0, squares = 0;
    for (size_t i = 0; i < now.size(); ++i) sum += static_cast<double>(now[i]) - static_cast<double>(base_[i]);
    const double mean = sum / count;
    for (size_t i = 0; i < now.size(); ++i) {
      const double off = static_cast<double>(now[i]) - static_cast<double>(base_[i]) - mean;
      squares += off * off;
    }
    return {mean, count > 1 ? std::sqrt(squares / (count - 1) / count) : 0};
  }

  void run_width(int bits) {
    const QuantRecipe quant = rounding_recipe();
    FactorCache factors(runner_, nullptr, quant);
    std::vector<Rounded> rounded;
    for (const TensorPlan& plan : plans_) {
      const QuantizedPart part = quantize_tensor(plan, {.bits = bits}, quant, runner_, factors);
      rounded.push_back({std::vector<float>(static_cast<size_t>(plan.weight.count())), part.report.mean_square});
      dequantize(part.tensor, rounded.back().weights);
    }
    for (size_t i = 0; i < plans_.size(); ++i) {
      report_.matrices[i].mean_square.push_back(rounded[i].mean_square);
      report_.matrices[i].change.push_back(change_with(rounded, [i](size_t other) { return other == i; }));
    }
    for (size_t layer = 0; layer < report_.layers.size(); ++layer)
      report_.layers[layer].push_back(
          change_with(rounded, [&](size_t i) { return report_.matrices[i].layer == static_cast<int64_t>(layer); }));
    report_.all.push_back(change_with(rounded, [](size_t) { return true; }));
  }

  AnalysisInput silent() const {
    AnalysisInput copy = input_;
    copy.progress = {};
    return copy;
  }

  const AnalysisInput& input_;
  const AnalysisInput silent_ = silent();  // progress is told by run, not by batch
  OpRunner runner_;
  Originals originals_;
  TokenRows rows_;
  std::vector<TensorPlan> plans_;
  std::vector<float> base_;
  SensitivityReport report_;
  int64_t runs_ = 0, done_ = 0;
};

}  // namespace

double SensitivityReport::upgrade(size_t i) const {
  FAIRWAY_ASSERT(bits.size() == 2, "an upgrade is from one width to another");
  return matrices[i].change[1].nats - matrices[i].change[0].nats;
}

double SensitivityReport::upgrade_per_mbit(size_t i) const {
  return upgrade(i) / (static_cast<double>((bits[0] - bits[1]) * matrices[i].weights) / 1e6);
}

SensitivityReport measure_sensitivity(const AnalysisInput& input, OpSite site, const std::vector<int>& bits) {
  return SensitivityMeter(input, site, bits).run();
}

}  // namespace fairway
