#include "pack/forecast.h"

#include "artifact/artifact.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

Recipe rounded(Recipe recipe) {
  recipe.quant.rule = QuantRule::rtn;
  return recipe;
}

}  // namespace

SizeForecast::SizeForecast(const Recipe& recipe, OpSite site)
    : recipe_(rounded(recipe)), site_(site), weights_(parameter_table(recipe), ParamStore::Gradients::none) {}

uint64_t SizeForecast::bytes(const Tensor& flat_weights) {
  weights_.set_values(flat_weights);
  QuantReport report;
  return estimate_size(quantize_model(weights_, recipe_, nullptr, site_, report)).total();
}

}  // namespace fairway
