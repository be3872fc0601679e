// Weights named on the command line: a run folder, an artifact, or a .safetensors file together with --recipe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "model/safetensors.h"
#include "quant/quantized_model.h"
#include "recipe/recipe.h"

namespace fairway {

struct WeightSource {
  Recipe recipe;
  Safetensors weights;
  std::filesystem::path folder;  // of the run; empty for a lone file
  FileIdentity file;             // whose bytes the weights are, as they were read
  bool packed = false;           // an artifact; else weights as they were trained
};
// InputError also when a weight is NaN or infinite.
WeightSource open_weights(const std::string& run_or_file, const std::string& recipe, const std::vector<std::string>& overrides);

// The architecture of an artifact, and the length it was trained at as the window of scoring and of the rotation's base.
Recipe artifact_recipe(const QuantizedModel& model);

// Said before any work, and as the user's to mend: InputError when --out cannot become a file.
void require_place_for_file(const std::filesystem::path& out);

}  // namespace fairway
