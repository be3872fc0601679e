// `fairway export`, `unpack` and `import`: weights under the interchange names.
#include "stages/weights.h"

#include <fmt/core.h>

#include "app/command.h"
#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

// Returns how many tensors it wrote.
size_t save_weights(const fs::path& path, const WeightSource& source) {
  const ModelWeights& weights = source.weights;
  std::vector<NamedTensor> tensors;
  for (const ParamBank& bank : weights.params->banks())
    tensors.push_back({bank.info.name, bank.value, bank.info.shape.empty()});
  std::map<std::string, std::string> metadata = weights.metadata;
  if (source.packed) {
    metadata["looped"] = weights.looped ? "1" : "0";
    if (!weights.recipe_hash.empty()) metadata["recipe_hash"] = weights.recipe_hash;
    if (!weights.tokenizer.empty()) metadata["tokenizer"] = weights.tokenizer;
  }
  save_safetensors(path, tensors, metadata);
  return tensors.size();
}

int export_weights(const CommonFlags& flags, const std::string& from, const std::string& recipe, const std::string& out) {
  require_place_for_file(out);
  const WriterLock lock = WriterLock::of_file(out);
  const WeightSource source = open_weights(from, recipe, {});
  const size_t tensors = save_weights(out, source);
  print_result(flags, {{"path", out}, {"tensors", tensors}}, fmt::format("{} tensors to {}\n", tensors, out));
  return 0;
}

int import_weights(const CommonFlags& flags, const std::string& file, const std::string& recipe, const std::string& out) {
  const WeightSource source = open_weights(file, recipe, {});
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw InputError("--out " + out + ": cannot be created (" + error.message() + ")");
  const WriterLock lock = WriterLock::of_folder(out);
  if (fs::exists(fs::path(out) / "recipe.toml")) throw InputError("--out " + out + ": already holds a run");
  write_file_atomic(fs::path(out) / "recipe.toml", to_toml(source.recipe));
  const size_t tensors = save_weights(fs::path(out) / "averaged.safetensors", source);
  print_result(flags, {{"path", out}, {"tensors", tensors}}, fmt::format("{} tensors to {}\n", tensors, out));
  return 0;
}

// `unpack` is `export` of an artifact and nothing else.
int unpack(const CommonFlags& flags, const std::string& file, const std::string& out) {
  if (fs::is_directory(file) || !is_artifact(file)) throw InputError(file + ": not a Fairway artifact (.fwy)");
  return export_weights(flags, file, "", out);
}

}  // namespace

void add_weights(CLI::App& program) {
  struct Flags {
    std::string from, recipe, out;
  };
  auto to_file = std::make_shared<Flags>();
  CLI::App* exporter = add_command(
      program, "export", "write a run's weights under the interchange names",
      [=](const CommonFlags& flags) { return export_weights(flags, to_file->from, to_file->recipe, to_file->out); });
  exporter->add_option("RUN", to_file->from, "a run folder, an artifact or a .safetensors file")->required();
  exporter->add_option("--recipe", to_file->recipe, "recipe of a weight file that has no run folder");
  exporter->add_option("--out", to_file->out, "the .safetensors file to write")->required();
  auto artifact = std::make_shared<Flags>();
  CLI::App* unpacker = add_command(program, "unpack", "write an artifact's weights under the interchange names",
                                   [=](const CommonFlags& flags) { return unpack(flags, artifact->from, artifact->out); });
  unpacker->add_option("FILE", artifact->from, "an artifact (.fwy)")->required();
  unpacker->add_option("--out", artifact->out, "the .safetensors file to write")->required();
  auto to_run = std::make_shared<Flags>();
  CLI::App* importer = add_command(program, "import", "make a run folder from a weight file", [=](const CommonFlags& flags) {
    return import_weights(flags, to_run->from, to_run->recipe, to_run->out);
  });
  importer->add_option("FILE", to_run->from, "weights under the interchange names")->required();
  importer->add_option("--recipe", to_run->recipe, "the recipe of the weights")->required();
  importer->add_option("--out", to_run->out, "the run folder to make")->required();
}

}  // namespace fairway::app
