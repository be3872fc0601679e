#include "quant/damage.h"

#include <cmath>

#include "base/error.h"

namespace fairway {

DamageModel::DamageModel(const std::vector<TensorPlan>& plans, const QuantRecipe& quant, OpRunner& runner,
                         const FactorCache& factors, const TensorMoments& moments) {
  for (const TensorPlan& plan : plans) {
    const MatrixView w = plan.weight;
    Tensor& tensor = tensors_.emplace_back(Tensor{.count = static_cast<double>(w.count())});
    const Hessian* hessian = factors.hessian(plan);
    if (hessian != nullptr) {
      tensor.signal = hessian_loss(runner, w, *hessian);
      tensor.mean_input = hessian->trace() / static_cast<double>(w.cols);
    } else
      for (int64_t i = 0; i < w.count(); ++i) tensor.signal += static_cast<double>(w.data[i]) * static_cast<double>(w.data[i]);
    tensor.weight = sensitivity(plan.role, quant.sensitivity) * tensor.count;
    const auto moment = moments.find(plan.name());
    if (moment == moments.end() || !std::isfinite(moment->second.all)) continue;
    // ½·moment·tr(D·H·Dᵀ)/(rows·tr H) is weight·tr(D·H·Dᵀ)/signal; without H it is that of inputs alike in all columns.
    const double inputs = hessian != nullptr ? hessian->trace() : static_cast<double>(w.cols);
    tensor.weight = 0.5 * moment->second.all * tensor.signal / (static_cast<double>(w.rows) * inputs);
  }
}

double DamageModel::relative_error(size_t index, const TensorReport& report) const {
  const Tensor& tensor = tensors_[index];
  if (!(tensor.signal > 0)) return 0;
  return (report.weighted ? 1 : tensor.mean_input) * report.counted / tensor.signal;
}

double DamageModel::of(const QuantReport& report) const {
  FAIRWAY_ASSERT(report.tensors.size() == tensors_.size(), "the model was quantized from these weights");
  double sum = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) sum += of_tensor(i, relative_error(i, report.tensors[i]));
  return sum;
}

}  // namespace fairway
