// Two widths by the trace of the Hessian (scoring spec §4.9): the `count` matrices of largest trace keep their bits.
#pragma once

#include "quant/hessians.h"
#include "quant/tensor_plan.h"

namespace fairway {

// Indices into plans of the matrices that take mixed.bits, ascending. Matrices without a Hessian count as trace zero.
std::vector<size_t> narrow_matrices(const std::vector<TensorPlan>& plans, const HessianStore* hessians, int64_t count);

}  // namespace fairway
