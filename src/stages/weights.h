// Weights named on the command line: a run folder, an artifact, or a .safetensors file together with --recipe.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_identity.h"
#include "model/param_store.h"
#include "model/safetensors.h"
#include "quant/quantized_model.h"
#include "recipe/recipe.h"

namespace fairway {

struct ModelWeights {
  std::shared_ptr<ParamStore> params;
  bool looped = false;                          // depth recurrence was on at the end of training
  std::string tokenizer;                        // one of its Vocabulary::names(); empty: the file does not tell
  std::string tokenizer_model;                  // the tokenizer itself, where an artifact carries it
  std::string recipe_hash;                      // an artifact's, which may be empty
  std::map<std::string, std::string> metadata;  // of a weight file
};
// The model's table is that of the recipe.
ModelWeights dequantized(const QuantizedModel& model, const Recipe& recipe);
// InputError where a tensor is absent, has another shape or is not finite. A file without a mark is looped if the recipe loops.
ModelWeights stored_weights(const Safetensors& file, const Recipe& recipe);

struct WeightSource {
  Recipe recipe;
  ModelWeights weights;
  std::filesystem::path folder;  // of the run; empty for a lone file
  FileIdentity file;             // whose bytes the weights are, as they were read
  bool packed = false;           // an artifact; else weights as they were trained
};
WeightSource open_weights(const std::string& run_or_file, const std::string& recipe, const std::vector<std::string>& overrides);

// The architecture of an artifact, and the length it was trained at as the window of scoring and of the rotation's base.
Recipe artifact_recipe(const QuantizedModel& model);

// Said before any work, and as the user's to mend: InputError when --out cannot become a file.
void require_place_for_file(const std::filesystem::path& out);

}  // namespace fairway
