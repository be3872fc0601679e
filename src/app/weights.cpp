#include "app/weights.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstring>

#include "app/command.h"
#include "artifact/artifact.h"
#include "artifact/interchange.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "params/param_store.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

std::vector<NamedTensor> interchange_tensors(const WeightSource& source) {
  std::vector<NamedTensor> out;
  for (const ParamInfo& info : parameter_table(source.recipe)) {
    const Tensor tensor = source.weights.get(info.name);
    if (tensor.spec != Spec{shape_of(info), DType::f32}) {
      throw InputError(fmt::format("{}: {} is {}{}, the recipe's model has f32{}", source.weights.name(), info.name,
                                   name_of(tensor.spec.dtype), tensor.spec.shape.text(), shape_of(info).text()));
    }
    out.push_back({info.name, tensor, info.shape.empty()});
  }
  return out;
}

int export_weights(const CommonFlags& flags, const std::string& from, const std::string& recipe, const std::string& out) {
  require_place_for_file(out);
  const WriterLock lock = WriterLock::of_file(out);
  const WeightSource source = open_weights(from, recipe, {});
  const std::vector<NamedTensor> tensors = interchange_tensors(source);
  save_safetensors(out, tensors, source.weights.metadata());
  print_result(flags, {{"path", out}, {"tensors", tensors.size()}}, fmt::format("{} tensors to {}\n", tensors.size(), out));
  return 0;
}

int import_weights(const CommonFlags& flags, const std::string& file, const std::string& recipe, const std::string& out) {
  const WeightSource source = open_weights(file, recipe, {});
  const std::vector<NamedTensor> tensors = interchange_tensors(source);
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw InputError("--out " + out + ": cannot be made (" + error.message() + ")");
  const WriterLock lock = WriterLock::of_folder(out);
  if (fs::exists(fs::path(out) / "recipe.toml")) throw InputError("--out " + out + ": holds a run already");
  write_file_atomic(fs::path(out) / "recipe.toml", to_toml(source.recipe));
  save_safetensors(fs::path(out) / "averaged.safetensors", tensors, source.weights.metadata());
  print_result(flags, {{"path", out}, {"tensors", tensors.size()}}, fmt::format("{} tensors to {}\n", tensors.size(), out));
  return 0;
}

WeightSource open_artifact(const std::string& file, const std::string& recipe, const std::vector<std::string>& overrides) {
  if (!recipe.empty())
    throw InputError("--recipe " + recipe + ": " + file + " is an artifact, which holds its own architecture");
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

// `unpack` is `export` of an artifact and nothing else.
int unpack(const CommonFlags& flags, const std::string& file, const std::string& out) {
  if (fs::is_directory(file) || !is_artifact(file)) throw InputError(file + ": not a Fairway artifact (.fwy)");
  return export_weights(flags, file, "", out);
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
  if (fs::is_directory(out)) throw InputError("--out " + out.string() + ": is a folder; name a file");
  if (access(folder.c_str(), W_OK) != 0)
    throw InputError("--out " + out.string() + ": cannot be written (" + std::strerror(errno) + ")");
}

namespace {

WeightSource read_weights(const std::string& run_or_file, const std::string& recipe,
                          const std::vector<std::string>& overrides) {
  if (fs::is_regular_file(run_or_file) && is_artifact(run_or_file)) return open_artifact(run_or_file, recipe, overrides);
  if (!fs::is_directory(run_or_file)) {
    if (recipe.empty()) throw InputError(run_or_file + ": a weight file needs --recipe to tell which model it is");
    return open_floats(load_recipe(recipe, overrides), run_or_file, {});
  }
  const fs::path folder = run_or_file, weights = folder / "averaged.safetensors";
  if (!fs::exists(folder / "recipe.toml")) throw InputError(run_or_file + ": no run folder (it has no recipe.toml)");
  if (!fs::exists(weights))
    throw InputError(run_or_file +
                     ": the run has not ended (it has no averaged.safetensors); go on with fairway train --resume");
  return open_floats(load_recipe(recipe.empty() ? (folder / "recipe.toml").string() : recipe, overrides), weights, folder);
}

}  // namespace

WeightSource open_weights(const std::string& run_or_file, const std::string& recipe,
                          const std::vector<std::string>& overrides) {
  WeightSource source = read_weights(run_or_file, recipe, overrides);
  require_finite_tensors(source.weights);
  return source;
}

void add_weights(CLI::App& program) {
  struct Flags {
    std::string from, recipe, out;
  };
  auto to_file = std::make_shared<Flags>();
  CLI::App* exporter = add_command(
      program, "export", "write a run's weights under the interchange names",
      [=](const CommonFlags& flags) { return export_weights(flags, to_file->from, to_file->recipe, to_file->out); });
  exporter->add_option("RUN", to_file->from, "a run folder, an artifact or a .safetensors file")->required();
  exporter->add_option("--recipe", to_file->recipe, "the recipe of a lone weight file");
  exporter->add_option("--out", to_file->out, "the .safetensors file to write")->required();
  auto artifact = std::make_shared<Flags>();
  CLI::App* unpacker = add_command(program, "unpack", "write an artifact's weights under the interchange names",
                                   [=](const CommonFlags& flags) { return unpack(flags, artifact->from, artifact->out); });
  unpacker->add_option("FILE", artifact->from, "an artifact (.fwy)")->required();
  unpacker->add_option("--out", artifact->out, "the .safetensors file to write")->required();
  auto to_run = std::make_shared<Flags>();
  CLI::App* importer = add_command(program, "import", "make a run folder of a weight file", [=](const CommonFlags& flags) {
    return import_weights(flags, to_run->from, to_run->recipe, to_run->out);
  });
  importer->add_option("FILE", to_run->from, "weights under the interchange names")->required();
  importer->add_option("--recipe", to_run->recipe, "the recipe of the weights")->required();
  importer->add_option("--out", to_run->out, "the run folder to make")->required();
}

}  // namespace fairway::app
