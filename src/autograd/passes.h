// Changes to a recording after it is made: other memory for its gradients, gradients that nobody wants, sums beside its values.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "autograd/program.h"

namespace fairway {

// Gradients of parameters go to the memory that `place` names, of as many elements, instead of where they were recorded for.
void rebind_gradients(Recording& recording, const std::function<Tensor(const ParamSlot&)>& place);

// No gradient is made for parameters that are frozen: their op then leaves out the product that would make it.
void drop_gradients(Program& program, const std::function<bool(const ParamSlot&)>& frozen);

// Gradients of parameters begin anew with each run: of the calls that add to one, the first writes it. Nobody clears them then;
// a parameter that no call reaches has a gradient of whatever was there.
void overwrite_gradients(Program& program);

// Has every observed value X that `wanted` names multiplied by itself right after it is made, and XᵀX added to a state of the
// session: f64 (C, C), its lower triangle. Nothing is observed any more. The states by the name of their point, which several
// values may share.
std::map<std::string, int32_t> sum_products(Program& program, const std::function<bool(const std::string&)>& wanted);

}  // namespace fairway
