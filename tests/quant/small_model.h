// A small model with made-up weights and Hessians of correlated inputs.
#pragma once

#include "quant/problem.h"
#include "quant/quantize_model.h"

namespace fairway::quant_test {

struct SmallModel {
  Recipe recipe;
  Queue queue{2};
  ParamStore weights;
  HessianStore hessians{queue};

  explicit SmallModel(const std::vector<std::string>& overrides = {})
      : recipe(load_recipe("smoke", with_base(overrides))), weights(parameter_table(recipe), ParamStore::Gradients::none) {
    uint64_t seed = 100;
    for (const ParamBank& bank : weights.banks()) {
      const Matrix m = gaussian(bank.value.rows(), bank.value.cols(), ++seed, 0.05F);
      std::copy(m.values.begin(), m.values.end(), bank.value.as<float>());
    }
    for (int64_t layer = 0; layer < recipe.model.layers; ++layer)
      for (const char* point : {".attn_in", ".attn_out", ".mlp_in", ".mlp_hidden"})
        put("layer" + std::to_string(layer) + point,
            std::string_view(point) == ".mlp_hidden" ? recipe.model.mlp_hidden : recipe.model.dim, ++seed);
    put("final", recipe.model.dim, ++seed);
  }

  QuantizedModel quantize(QuantReport& report) { return quantize_model(weights, recipe, &hessians, queue, report); }

 private:
  static std::vector<std::string> with_base(std::vector<std::string> overrides) {
    overrides.insert(overrides.begin(), {"model.layers=2", "model.value_embed.layers=[1]", "model.lanes.start=-1",
                                         "model.loop.count=0", "model.loop.start=0", "model.loop.end=0", "quant.rule=gptq"});
    return overrides;
  }
  void put(const std::string& point, int64_t side, uint64_t seed) {
    const double size = 1 + static_cast<double>(seed % 7);
    Hessian hessian = factor_model(side, 12, 4, seed);
    for (double& value : hessian.values) value *= size;
    hessians.put(point, side, std::move(hessian.values));
  }
};

}  // namespace fairway::quant_test
