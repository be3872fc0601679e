#include "app/quantizing.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/sha256.h"
#include "score/eval_model.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

}  // namespace

void add_quantizing_flags(CLI::App& command, QuantizingFlags& flags) {
  command.add_option("RUN", flags.from, "a run folder, or a .safetensors file with --recipe")->required();
  command.add_option("--recipe", flags.recipe, "the recipe of a lone weight file");
  command.add_option("--calibration", flags.calibration, "self, train or online (default: the recipe's)")
      ->check(CLI::IsMember({"self", "train", "online"}));
  command.add_option("--data", flags.data, "folder of shards for --calibration train (default: RUN/data)");
  command.add_option("--tokens", flags.tokens, "of --calibration self")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command.add_option("--set", flags.overrides, "key=value, replaces a key of the recipe")->take_all();
}

WeightSource open_quantizing(const QuantizingFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (!flags.calibration.empty()) overrides.push_back(fmt::format("quant.calibration=\"{}\"", flags.calibration));
  WeightSource source = open_weights(flags.from, flags.recipe, overrides);
  if (source.folder.empty() && source.recipe.quant.calibration != Calibration::self && flags.data.empty())
    throw InputError(flags.from + ": a lone weight file has no data or Hessians of its run; use --calibration self or --data");
  return source;
}

QuantizingInput prepare_quantizing(const WeightSource& source, const QuantizingFlags& flags, Machine& machine,
                                   Communicator& comm, bool quiet) {
  QuantizingInput input{.weights = ParamStore(parameter_table(source.recipe), ParamStore::Gradients::none)};
  load_weights(input.weights, source.weights);
  const QuantRecipe& quant = source.recipe.quant;
  const double begun = steady_seconds();
  if (wants_hessians(quant) || !flags.calibration.empty())
    input.hessians = make_hessians({source, input.weights, quant.calibration, flags.data, flags.tokens}, machine, comm, quiet);
  input.calibration_seconds = steady_seconds() - begun;
  return input;
}

std::string tokenizer_hash(const WeightSource& source, const QuantizingFlags& flags) {
  for (const fs::path& place : {fs::path(flags.data), source.folder / "data", source.folder}) {
    const fs::path file = place / "tokenizer.model";
    if (!place.empty() && fs::exists(file)) return sha256_of_file(file);
  }
  return {};
}

}  // namespace fairway::app
