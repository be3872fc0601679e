// Two-sided feedback. GPTQ lets errors make up for each other between the inputs of a weight; with G, the second moments of the
// loss's gradient by its outputs, they do so between outputs too: tr(G·D·H·Dᵀ) instead of tr(D·H·Dᵀ), with one Hessian for each
// side (YAQA, arXiv 2505.22988). Rows count as what is left of G's diagonal once the rows below made up for what they can, and
// their steps follow from that.
#pragma once

#include <cstdint>
#include <vector>

#include "quant/hessians.h"

namespace fairway {

struct OutputFactor {
  int64_t side = 0;           // rows of the weight
  std::vector<float> upper;   // (side, side): V with VᵀV = G⁻¹
  std::vector<float> counts;  // 1/V_ii², about 1
  uint64_t number = 0;        // as GptqFactor's
  bool usable() const { return !upper.empty(); }
};

// Of a weight that holds one row in `every` of those that G is of.
OutputFactor factorize_outputs(OpRunner& runner, const Hessian& outputs, int64_t every = 1);

}  // namespace fairway
