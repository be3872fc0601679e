// Low-rank correction of the quantization error (scoring spec §4.10): E = W − s·q ≈ A·B from the leading singular vectors,
// A in int2 with one scale, B in int4 with a scale per group of elements (the last group may be shorter).
#pragma once

#include "quant/quantize_model.h"

namespace fairway {

struct LeadingVectors {
  int64_t rank = 0;
  std::vector<double> left;   // (rows, rank), U·S
  std::vector<double> right;  // (rank, cols), Vᵀ
};
// Subspace iteration on the smaller Gram matrix; deterministic. rank <= min(rows, cols).
LeadingVectors leading_vectors(OpRunner& runner, MatrixView matrix, int64_t rank);

LowRankCorrection pack_correction(const LeadingVectors& vectors, int64_t rows, int64_t cols, int64_t group);

// Corrects the tensors of largest ‖E‖ and updates their reports. A correction that would not lower ‖E‖ is left out.
void correct_largest_errors(const std::vector<TensorPlan>& plans, const LqerRecipe& lqer, OpRunner& runner,
                            FactorCache& factors, QuantizedModel& model, QuantReport& report);

}  // namespace fairway
