// Which tensors a model is cut into and how each is stored (scoring spec §4.1): the banks' matrices and the token embedding as
// integers, larger tables as integers, everything else in half precision.
#pragma once

#include <string>
#include <vector>

#include "model/param_store.h"
#include "quant/grid.h"

namespace fairway {

struct TensorPlan {
  ParamId bank = ParamId::embed_token;
  int64_t slice = -1;
  QuantRole role = QuantRole::rest;
  bool integers = false;
  MatrixView weight;
  std::string point;                    // whose Hessian weighs its error; empty: none
  std::span<const float> dependence{};  // of the loss on each row; empty: all alike
  int64_t every = 1;                    // the weight has one row in so many of the tensor's: a sample

  std::string name() const { return tensor_name(bank, slice); }
  bool matrix() const { return is_layer_matrix(role); }
  bool attention() const { return is_attention(role); }
};

// In the order of parameter_table(), slices ascending. Throws InputError for weights that are not finite.
std::vector<TensorPlan> tensor_plans(const ParamStore& weights, const Recipe& recipe);

struct GridSetting {
  int bits = 8;
  double k = 0;     // SDClip
  double step = 0;  // positive: of the whole tensor, whatever the recipe's rule says
  bool trellis = false;
};
GridSetting grid_setting(const TensorPlan& plan, const QuantRecipe& quant);
// One step for the whole tensor, on the narrowest grid that reaches its largest weight and a little further: GPTQ moves
// weights. The grid of a trellis has half the step.
GridSetting shared_step_setting(double largest, double step, bool trellis = false);
double sensitivity(QuantRole role, const SensitivityRecipe& weights);

}  // namespace fairway
