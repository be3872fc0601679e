// Reading a golden file: numbers of its metadata, weights into a store, relative errors.
#pragma once

#include "golden/golden.h"
#include "params/param_store.h"

namespace fairway::golden {

double number(const Safetensors& file, const std::string& key);  // InputError when absent or no number
double number_or(const Safetensors& file, const std::string& key, double fallback);
// Copies `prefix + name` of the file into every parameter; shapes must agree.
void load_params(const Safetensors& file, const std::string& prefix, const ParamStore& params);
// ‖have − want‖/‖want‖ over the elements; infinite when either is not finite, or want is zero and have is not.
double relative_error(const float* have, const Tensor& want);
double relative_error(double have, double want);
bool looped(const Safetensors& file, const Recipe& recipe);  // told by the number of stored hidden states

}  // namespace fairway::golden
