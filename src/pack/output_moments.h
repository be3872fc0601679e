// G of two-sided feedback (quant/output_factor.h): the second moments of the loss's gradient by a matrix's outputs. With x the
// inputs and g that gradient a sequence's gradient of the matrix is Σ_t g_t·x_tᵀ, so G ~ E[∇W·H⁻¹·∇Wᵀ]. H⁻¹ makes all inputs
// count alike: without it their mean would, and a few sequences say little of what stands beside it.
#pragma once

#include <span>
#include <vector>

#include "quant/hessians.h"
#include "quant/tensor_moments.h"
#include "quant/tensor_plan.h"

namespace fairway {

class OutputMoments {
 public:
  // inputs: finished; null: nothing is measured. Layers' matrices with a usable Hessian of their inputs are.
  OutputMoments(OpSite site, std::span<const TensorPlan> plans, const HessianStore* inputs);
  void add(size_t plan, const float* gradient);                   // of one sequence, (rows, cols)
  Hessian take(size_t plan, const float* sum, double sequences);  // what was added, without the mean's part

 private:
  struct Directions {
    int64_t count = 0;          // 0: the Hessian is not usable
    std::vector<float> values;  // (C, count): P with P·Pᵀ ~ H⁻¹
  };
  Directions directions_of(const Hessian& inputs);
  void add_to(std::vector<double>& sums, size_t plan, const float* gradient);

  OpRunner runner_;
  std::span<const TensorPlan> plans_;
  std::map<std::string, Directions, std::less<>> directions_;  // by observe point
  std::vector<std::vector<double>> sums_;  // of each plan, (rows, rows), lower triangle; empty: not measured
};

}  // namespace fairway
