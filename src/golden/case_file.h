// Reading a golden file: the recipe that it was made with, weights into a store, relative errors.
#pragma once

#include "golden/golden.h"
#include "golden/metadata.h"
#include "model/param_store.h"

namespace fairway::golden {

struct Rows {
  int64_t count = 0, length = 0;  // B, T
  int64_t tokens() const { return count * length; }
};
// Model and data from metadata and the tensors `prefix + name`; one step over the rows. Not validated yet.
Recipe recipe_of(const Safetensors& file, Metadata& meta, const std::string& prefix, const Rows& rows);
void read_optimizer(const Safetensors& file, Metadata& meta, Recipe& recipe);
// Where depth recurrence is on is the file's LOOPED; in files without it the number of stored hidden states tells.
bool looped(const Safetensors& file, Metadata& meta, const Recipe& recipe);

// Copies `prefix + name` of the file into every parameter; shapes must agree.
void load_params(const Safetensors& file, const std::string& prefix, const ParamStore& params);
// ‖have − want‖/‖want‖ over the elements; infinite when either is not finite, or want is zero and have is not.
double relative_error(const float* have, const Tensor& want);
double relative_error(double have, double want);

}  // namespace fairway::golden
