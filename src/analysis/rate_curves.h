// What bits buy, tensor by tensor: GPTQ at steps shared by a tensor, beside the least that any code could take for the same
// error. With ℓ² the diagonal of the Cholesky factor of the inputs' Hessian and σ² the squares of a column, both as geometric
// means over columns, a Gaussian tensor takes at least ½·log2(σ²·ℓ²/D) bits a weight for an error D of a weight
// (Shannon's lower bound). One step for all columns is off it by ½·log2(mean ℓ²/geometric mean ℓ²), the column gain, and
// by ½·log2(2πe/12) = 0.2546 bits for rounding weights one at a time.
#pragma once

#include "analysis/progress.h"
#include "quant/quantize_model.h"

namespace fairway {

struct RatePoint {
  double doublings = 0;  // log2 of the step, in typical magnitudes of the tensor's weights
  double bits = 0;       // a weight: entropy within classes of columns of about the same width, as the coder has them
  double error = 0;      // tr(D·H·Dᵀ)/tr(W·H·Wᵀ)
  double bound = 0;      // bits a weight; 0 where the formula is negative
};

struct RateCurve {
  std::string name;  // tensor_name()
  QuantRole role = QuantRole::q;
  int64_t rows = 0, cols = 0;
  double column_gain = 0;         // bits a weight
  std::vector<RatePoint> points;  // from the finest step to the coarsest
};

struct RateReport {
  std::vector<RateCurve> tensors;  // those with a Hessian, in the order of the model's
  std::vector<RatePoint> all;      // bits and bounds of all weights together; error is the mean, by weights
  double column_gain = 0;          // mean over weights
};

// The weights as they were trained; hessians are finished.
RateReport measure_rates(const ParamStore& weights, const Recipe& recipe, const HessianStore& hessians, OpSite site,
                         const AnalysisProgress& progress);

}  // namespace fairway
