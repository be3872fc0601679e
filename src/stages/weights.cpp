#include "stages/weights.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstring>

#include "artifact/artifact.h"
#include "artifact/interchange.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "model/param_store.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

WeightSource open_artifact(const std::string& file, const std::string& recipe, const std::vector<std::string>& overrides) {
  if (!recipe.empty()) throw InputError("--recipe " + recipe + ": " + file + " is an artifact, which has its own architecture");
  const std::string bytes = read_file(file, kMostArtifactFileBytes);
  const QuantizedModel model = read_artifact(bytes, file);
  WeightSource source{artifact_recipe(model), to_safetensors(model, file), {}, identity_of(file, bytes), true};
  for (const std::string& change : overrides) apply_override(source.recipe, change);
  if (source.recipe.model != model.model) throw InputError("--set: the architecture of " + file + " cannot be changed");
  return source;
}

WeightSource open_floats(Recipe recipe, const fs::path& file, const fs::path& folder) {
  std::string bytes = read_file(file, kMostSafetensorsBytes);
  FileIdentity identity = identity_of(file, bytes);
  return {std::move(recipe), Safetensors::parse(std::move(bytes), file.string()), folder, std::move(identity)};
}

}  // namespace

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

namespace {

WeightSource read_weights(const std::string& run_or_file, const std::string& recipe,
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

}  // namespace

WeightSource open_weights(const std::string& run_or_file, const std::string& recipe,
                          const std::vector<std::string>& overrides) {
  WeightSource source = read_weights(run_or_file, recipe, overrides);
  require_finite_tensors(source.weights);
  return source;
}

}  // namespace fairway
