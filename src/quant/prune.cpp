#include "quant/prune.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/half.h"

namespace fairway {
namespace {

constexpr int kMostBits = 6;

void collect(const QuantizedTensor& tensor, uint32_t place, const TensorPlan& plan, const Hessian* hessian, PruneScore score,
             std::vector<PruneCandidate>& out) {
  for (int64_t row = 0; row < tensor.rows; ++row) {
    const double step = from_half(tensor.scale[static_cast<size_t>(row)]);
    for (int64_t j = 0; j < tensor.cols; ++j) {
      const int64_t at = row * tensor.cols + j;
      if (std::abs(tensor.q[static_cast<size_t>(at)]) != 1) continue;
      double cost = step * step;
      if (score == PruneScore::hessian)
        cost = (hessian != nullptr ? hessian->at(j, j) : 1) *
               (2 * step * std::abs(static_cast<double>(plan.weight.data[at])) - cost);
      out.push_back({cost, place, static_cast<uint32_t>(at)});
    }
  }
}

}  // namespace

std::vector<PruneCandidate> prune_candidates(const QuantizedModel& model, const ParamStore& weights, const Recipe& recipe,
                                             const HessianStore* hessians, PruneScore score) {
  std::vector<PruneCandidate> list;
  const std::vector<TensorPlan> plans = tensor_plans(weights, recipe);
  FAIRWAY_ASSERT(plans.size() == model.tensors.size(), "the model was quantized from these weights");
  for (size_t i = 0; i < plans.size() && score != PruneScore::none; ++i) {
    const QuantizedTensor& tensor = model.tensors[i];
    if (!plans[i].matrix() || tensor.coding != TensorCoding::integer_rows || tensor.bits > kMostBits) continue;
    const Hessian* hessian = hessians != nullptr ? hessians->find(plans[i].point) : nullptr;
    collect(tensor, static_cast<uint32_t>(i), plans[i], hessian, score, list);
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  return list;
}

void prune(QuantizedModel& model, std::span<const PruneCandidate> candidates) {
  for (const PruneCandidate& candidate : candidates) model.tensors[candidate.tensor].q[candidate.index] = 0;
}

void measure_pruned(const QuantizedModel& model, const ParamStore& weights, const Recipe& recipe, const HessianStore* hessians,
                    OpSite site, QuantReport& report) {
  const std::vector<TensorPlan> plans = tensor_plans(weights, recipe);
  OpRunner runner(site);
  const FactorCache factors(runner, hessians, recipe.quant);
  for (size_t i = 0; i < plans.size(); ++i)
    if (plans[i].matrix()) measure(plans[i], model.tensors[i], runner, factors.hessian(plans[i]), report.tensors[i]);
}

}  // namespace fairway
