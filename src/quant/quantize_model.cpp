#include "quant/quantize_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "quant/lqer.h"
#include "quant/mixed_bits.h"
#include "quant/shared_tensors.h"

namespace fairway {

std::vector<size_t> narrow_matrices(const std::vector<TensorPlan>& plans, const HessianStore* hessians, int64_t count) {
  std::vector<std::pair<double, size_t>> traces;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].matrix()) continue;
    const Hessian* hessian = hessians != nullptr ? hessians->find(plans[i].point) : nullptr;
    traces.emplace_back(hessian != nullptr ? hessian->trace() : 0, i);
  }
  std::stable_sort(traces.begin(), traces.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<size_t> narrow;
  for (size_t i = static_cast<size_t>(count); i < traces.size(); ++i) narrow.push_back(traces[i].second);
  std::sort(narrow.begin(), narrow.end());
  return narrow;
}

std::vector<std::string> QuantReport::fallbacks() const {
  std::vector<std::string> sentences;
  for (const TensorReport& tensor : tensors)
    if (!tensor.fallback.empty())
      sentences.push_back(fmt::format("{} was rounded instead of quantized by GPTQ: {}", tensor.name, tensor.fallback));
  return sentences;
}

QuantizedModel quantize_model(const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians, OpSite site,
                              QuantReport& report, Communicator& comm) {
  OpRunner runner(site);
  FactorCache factors(runner, hessians, recipe.quant);
  return quantize_model(weights, recipe, hessians, runner, factors, report, comm);
}

QuantizedModel quantize_model(const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians, OpRunner& runner,
                              FactorCache& factors, QuantReport& report, Communicator& comm) {
  const std::vector<TensorPlan> plans = tensor_plans(weights, recipe);
  std::vector<size_t> narrow;
  if (recipe.quant.mixed.count > 0) narrow = narrow_matrices(plans, hessians, recipe.quant.mixed.count);
  QuantizedModel model{.model = recipe.model,
                       .recipe_hash = recipe_hash(recipe),
                       .train_length = recipe.data.seq_len,
                       .segment = segment_of(recipe)};
  report.tensors.clear();
  std::vector<TensorJob> jobs;
  for (size_t i = 0; i < plans.size(); ++i) {
    GridSetting setting = grid_setting(plans[i], recipe.quant);
    if (std::binary_search(narrow.begin(), narrow.end(), i)) setting.bits = static_cast<int>(recipe.quant.mixed.bits);
    jobs.push_back({&plans[i], {setting}});
  }
  for (QuantizedPart& part : quantize_tensors(jobs, recipe.quant, runner, factors, comm)) {
    model.tensors.push_back(std::move(part.tensor));
    report.tensors.push_back(std::move(part.report));
  }
  if (recipe.quant.lqer.tensors > 0) correct_largest_errors(plans, recipe.quant.lqer, runner, factors, model, report);
  return model;
}

}  // namespace fairway
