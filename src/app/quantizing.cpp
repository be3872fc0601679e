#include "app/quantizing.h"

#include <fmt/core.h>

#include "app/tokenizer_check.h"
#include "base/error.h"
#include "score/eval_model.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;

// The data's tokenizer is checked whether calibration will read shards or not: its hash goes into the artifact.
std::string checked_tokenizer(const WeightSource& source, const QuantizingFlags& flags, std::vector<std::string>& notes) {
  const TokenizerClaim claim = tokenizer_claim(source.weights);
  std::vector<fs::path> places;
  if (!flags.data.empty()) places.emplace_back(flags.data);
  if (!source.folder.empty()) places.insert(places.end(), {source.folder / "data", source.folder});
  for (const fs::path& place : places) {
    const bool there = fs::exists(place / "tokenizer.model") || fs::exists(place / "manifest.json");
    if (!there && place != fs::path(flags.data)) continue;
    data::FolderTokenizer beside = data::open_tokenizer(place);
    require_tokenizer(claim, beside);
    notes = beside.notes;
    if (!beside.identity.empty()) return beside.identity;
  }
  return claim.hash;
}

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
  std::vector<std::string> notes;
  input.tokenizer = checked_tokenizer(source, flags, notes);
  load_weights(input.weights, source.weights);
  const QuantRecipe& quant = source.recipe.quant;
  const double begun = steady_seconds();
  if (wants_hessians(quant) || !flags.calibration.empty())
    input.hessians = make_hessians({source, input.weights, quant.calibration, flags.data, flags.tokens}, machine, comm, quiet);
  input.calibration_seconds = steady_seconds() - begun;
  tell_notes(notes, quiet || !comm.root());
  return input;
}

}  // namespace fairway::app
