// `fairway import`: a run folder from weights that another program made.
#include <fmt/format.h>

#include "app/command.h"
#include "app/named_inputs.h"
#include "artifact/artifact.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_identity.h"
#include "base/output.h"
#include "base/writer_lock.h"
#include "interchange/export_weights.h"
#include "interchange/fit.h"
#include "interchange/guess_recipe.h"
#include "interchange/limits.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using interchange::Fit;
using interchange::Misfit;
using nlohmann::ordered_json;

struct ImportRequest {
  std::string file, recipe, out;
  std::vector<std::string> overrides;
  bool round_tables = false;
};

struct ImportResult {
  FileIdentity source;
  std::string format, why;
  std::string recipe_name;
  Fit fit;
  std::vector<std::string> not_finite, rounded;
  int64_t parameters = 0;
};

ordered_json names_in(const std::vector<Misfit>& misfits) {
  ordered_json names = ordered_json::array();
  for (const Misfit& misfit : misfits) names.push_back(misfit.name);
  return names;
}

ordered_json to_json(const ImportResult& result) {
  ordered_json mismatches = ordered_json::array();
  for (const auto* list : {&result.fit.missing, &result.fit.unexpected, &result.fit.transposed}) {
    for (const Misfit& misfit : *list) {
      mismatches.push_back({{"name", misfit.name},
                            {"expected", misfit.expected ? ordered_json(*misfit.expected) : ordered_json()},
                            {"found", misfit.found ? ordered_json(*misfit.found) : ordered_json()}});
      if (!misfit.remark.empty()) mismatches.back()["remark"] = misfit.remark;
    }
  }
  return {{"file", result.source.path.filename().string()},
          {"sha256", result.source.sha256},
          {"bytes", result.source.bytes},
          {"format", result.format},
          {"recipe", result.recipe_name},
          {"why", result.why},
          {"tensors", result.fit.tensors},
          {"parameters", result.parameters},
          {"missing", names_in(result.fit.missing)},
          {"unexpected", names_in(result.fit.unexpected)},
          {"transposed", names_in(result.fit.transposed)},
          {"mismatches", mismatches},
          {"ignored", result.fit.ignored},
          {"filled", result.fit.filled},
          {"rounded", result.rounded},
          {"not_finite", result.not_finite}};
}

std::string to_text(const ImportResult& result) {
  std::string text = fmt::format("{}: {}, {} bytes, SHA-256 {}\nrecipe {}: {}\n", result.source.path.string(), result.format,
                                 result.source.bytes, result.source.sha256, result.recipe_name, result.why);
  const auto list = [&](const char* what, const std::vector<Misfit>& misfits) {
    for (const Misfit& misfit : misfits) text += fmt::format("{:10} {}\n", what, misfit.text());
  };
  list("missing", result.fit.missing);
  list("unexpected", result.fit.unexpected);
  list("transposed", result.fit.transposed);
  if (!result.fit.ignored.empty()) text += fmt::format("left out, no parameters: {}\n", fmt::join(result.fit.ignored, ", "));
  if (!result.fit.filled.empty())
    text += fmt::format("not in the file, taken as identities: {}\n", fmt::join(result.fit.filled, ", "));
  if (!result.rounded.empty()) text += fmt::format("rounded to bf16: {}\n", fmt::join(result.rounded, ", "));
  return text;
}

Recipe choose_recipe(const ImportRequest& request, const interchange::WeightSet& set, ImportResult& result) {
  if (request.recipe.empty()) {
    interchange::GuessedRecipe guess = interchange::guess_recipe(set, request.overrides);
    result.recipe_name = guess.name;
    result.why = "guessed: " + guess.why;
    return guess.recipe;
  }
  result.recipe_name = request.recipe;
  result.why = "given";
  return load_recipe(request.recipe, request.overrides);
}

// Its folder is made when nothing is left to be refused.
void write_run(const ImportRequest& request, const Recipe& recipe, const interchange::WeightSet& set,
               const interchange::Loaded& loaded, const ImportResult& result) {
  const fs::path folder = request.out;
  if (const std::error_code error = disk::make_folders(folder))
    throw InputError("--out " + request.out + ": cannot be created (" + error.message() + ")");
  const WriterLock lock = WriterLock::of_folder(folder);
  if (fs::exists(folder / "recipe.toml")) throw InputError("--out " + request.out + ": already holds a run");
  std::map<std::string, std::string> metadata = set.metadata;
  metadata["imported_from"] = result.source.path.filename().string();
  metadata["imported_sha256"] = result.source.sha256;
  save_safetensors(folder / "averaged.safetensors",
                   interchange::named_tensors(*loaded.params, recipe.model.layers, interchange::NameStyle::fairway), metadata);
  write_file_atomic(folder / "import.json", to_json(result).dump(2) + "\n");
  write_file_atomic(folder / "recipe.toml", to_toml(recipe));
}

int import_weights(const CommonFlags& flags, const ImportRequest& request) {
  if (fs::exists(fs::path(request.out) / "recipe.toml")) throw InputError("--out " + request.out + ": already holds a run");
  require_checkpoint(request.file);
  if (is_artifact(request.file))
    throw InputError(request.file +
                     ": an artifact of Fairway, which every command takes as it is; fairway unpack gives its weights");
  std::string bytes = read_file(request.file, interchange::kMostFileBytes);
  ImportResult result{.source = identity_of(request.file, bytes)};
  const interchange::WeightSet set = interchange::read_weight_set(std::move(bytes), request.file);
  result.format = set.format;
  const Recipe recipe = choose_recipe(request, set, result);
  result.parameters = parameter_count(recipe.model);
  result.fit = interchange::fit_of(set, recipe.model);
  if (!result.fit.whole()) {
    print_result(flags, to_json(result), to_text(result));
    throw InputError(
        fmt::format("{}: not the weights of recipe {}: {}", request.file, result.recipe_name, result.fit.sentence()));
  }
  const interchange::Loaded loaded = interchange::load(set, recipe, request.round_tables);
  result.not_finite = loaded.not_finite;
  result.rounded = loaded.rounded;
  for (const std::string& told : result.not_finite)
    print_err(fmt::format("fairway: warning: {}: {}; commands that use these weights will refuse them\n", request.file, told));
  write_run(request, recipe, set, loaded, result);
  ordered_json json = to_json(result);
  json["path"] = request.out;
  print_result(
      flags, json,
      to_text(result) + fmt::format("{} tensors, {} parameters to {}\n", result.fit.tensors, result.parameters, request.out));
  return 0;
}

}  // namespace

void add_import(CLI::App& program) {
  auto request = std::make_shared<ImportRequest>();
  CLI::App* command =
      add_command(program, "import", "make a run folder from a checkpoint, a published artifact or a weight file",
                  [=](const CommonFlags& flags) { return import_weights(flags, *request); });
  command->add_option("FILE", request->file, "PyTorch's .pt, a published .ptz, or .safetensors")->required();
  command->add_option("--recipe", request->recipe, "the recipe of the weights (default: the built-in one with their shapes)");
  command->add_option("--set", request->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_flag("--tables-bf16", request->round_tables,
                    "round the token, bigram and value tables to bf16, as the published evaluations do");
  command->add_option("--out", request->out, "the run folder to make")->required();
}

}  // namespace fairway::app
