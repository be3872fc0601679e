#include "stages/weights.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstring>

#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "quant/quantize_model.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

WeightSource open_artifact(const std::string& file, const std::string& recipe, const std::vector<std::string>& overrides) {
  if (!recipe.empty()) throw InputError("--recipe " + recipe + ": " + file + " is an artifact, which has its own architecture");
  const std::string bytes = read_file(file, kMostArtifactFileBytes);
  const QuantizedModel model = read_artifact(bytes, file);
  WeightSource source{artifact_recipe(model), {}, {}, identity_of(file, bytes), true};
  for (const std::string& change : overrides) apply_override(source.recipe, change);
  if (source.recipe.model != model.model) throw InputError("--set: the architecture of " + file + " cannot be changed");
  source.weights = dequantized(model, source.recipe);
  return source;
}

WeightSource open_floats(Recipe recipe, const fs::path& file, const fs::path& folder) {
  std::string bytes = read_file(file, kMostSafetensorsBytes);
  FileIdentity identity = identity_of(file, bytes);
  ModelWeights weights = stored_weights(Safetensors::parse(std::move(bytes), file.string()), recipe);
  return {std::move(recipe), std::move(weights), folder, std::move(identity)};
}

// By interchange names.
void copy_tensors(const Safetensors& file, const ParamStore& to) {
  for (const ParamBank& bank : to.banks()) {
    const Tensor stored = file.get(bank.info.name);
    if (stored.spec != bank.value.spec) {
      throw InputError(file.name() + ": " + bank.info.name + " is " + name_of(stored.spec.dtype) + stored.spec.shape.text() +
                       ", the recipe's model has f32" + bank.value.spec.shape.text());
    }
    std::memcpy(bank.value.data, stored.data, stored.spec.bytes());
  }
}

std::shared_ptr<ParamStore> params_of(const Recipe& recipe) {
  return std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
}

}  // namespace

ModelWeights dequantized(const QuantizedModel& model, const Recipe& recipe) {
  ModelWeights weights{.params = params_of(recipe),
                       .looped = recipe.model.loop.count > 0 && model.looped,
                       .tokenizer = model.tokenizer,
                       .tokenizer_model = model.tokenizer_model,
                       .recipe_hash = model.recipe_hash};
  dequantize(model, *weights.params);
  return weights;
}

ModelWeights stored_weights(const Safetensors& file, const Recipe& recipe) {
  require_finite_tensors(file);
  ModelWeights weights{.params = params_of(recipe), .metadata = file.metadata()};
  const auto looped = file.metadata().find("looped"), tokenizer = file.metadata().find("tokenizer"),
             none = file.metadata().end();
  weights.looped = recipe.model.loop.count > 0 && (looped == none || looped->second == "1");
  if (tokenizer != none) weights.tokenizer = tokenizer->second;
  copy_tensors(file, *weights.params);
  return weights;
}

Recipe artifact_recipe(const QuantizedModel& model) {
  Recipe recipe;
  recipe.model = model.model;
  if (model.train_length > 0) {
    recipe.data.seq_len = recipe.score.context = model.train_length;
    recipe.score.stride = std::min(recipe.score.stride, model.train_length);
  }
  if (model.segment > 0) {
    recipe.data.sampler = SamplerKind::docpack;
    recipe.data.max_segment = model.segment;
    recipe.score.documents = true;
  }
  return recipe;
}

void require_place_for_file(const fs::path& out) {
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  if (!fs::is_directory(folder)) throw InputError("--out " + out.string() + ": there is no folder " + folder.string());
  if (fs::is_directory(out)) throw InputError("--out " + out.string() + ": is a folder; expected a file name");
  if (access(folder.c_str(), W_OK) != 0)
    throw InputError("--out " + out.string() + ": cannot be written (" + std::strerror(errno) + ")");
}

WeightSource open_weights(const std::string& run_or_file, const std::string& recipe,
                          const std::vector<std::string>& overrides) {
  if (fs::is_regular_file(run_or_file) && is_artifact(run_or_file)) return open_artifact(run_or_file, recipe, overrides);
  if (!fs::is_directory(run_or_file)) {
    if (recipe.empty()) throw InputError(run_or_file + ": a weight file needs --recipe, which says what model it is");
    return open_floats(load_recipe(recipe, overrides), run_or_file, {});
  }
  const fs::path folder = run_or_file, weights = folder / "averaged.safetensors";
  if (!fs::exists(folder / "recipe.toml")) throw InputError(run_or_file + ": not a run folder (it has no recipe.toml)");
  if (!fs::exists(weights))
    throw InputError(run_or_file +
                     ": the run is not finished (it has no averaged.safetensors); continue it with fairway train --resume");
  return open_floats(load_recipe(recipe.empty() ? (folder / "recipe.toml").string() : recipe, overrides), weights, folder);
}

}  // namespace fairway
