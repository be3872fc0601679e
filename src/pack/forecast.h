// What the artifact would take as published if training ended now: weights rounded to the recipe's grids, integers counted at
// their entropy. No calibration: GPTQ moves a file by well under a percent. The best model for a budget fills it anyway.
#pragma once

#include "model/param_store.h"
#include "quant/op_runner.h"

namespace fairway {

class SizeForecast {
 public:
  SizeForecast(const Recipe& recipe, OpSite site);
  uint64_t bytes(const Tensor& flat_weights);  // as ParamStore::flat_values() lays them out

 private:
  Recipe recipe_;
  OpSite site_;
  ParamStore weights_;
};

}  // namespace fairway
