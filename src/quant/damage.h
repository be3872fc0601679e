// What quantizing is expected to cost: Σ over tensors of weight·tr(D·H·Dᵀ)/tr(W·H·Wᵀ), rows counted as the loss depends on
// them. With measured moments (tensor_moments.h) it is in nats a token; without them a weight is the sensitivity of the
// role·weights, and sums only compare with each other.
#pragma once

#include "quant/quantize_model.h"
#include "quant/tensor_moments.h"

namespace fairway {

class DamageModel {
 public:
  DamageModel() = default;
  DamageModel(const std::vector<TensorPlan>& plans, const QuantRecipe& quant, OpRunner& runner, const FactorCache& factors,
              const TensorMoments& moments);

  double of(const QuantReport& report) const;  // of any model quantized from the same weights
  double of_tensor(size_t index, double relative_error) const { return tensors_[index].weight * relative_error; }
  double relative_error(size_t index, const TensorReport& report) const;

 private:
  struct Tensor {
    double weight = 0;      // damage of a relative error of one
    double signal = 0;      // tr(W·H·Wᵀ), of W·Wᵀ without a Hessian
    double mean_input = 1;  // squared: what a square counts that was made without the Hessian
    double count = 0;
  };
  std::vector<Tensor> tensors_;  // in the order of the plans
};

}  // namespace fairway
