#include "stages/quantizing.h"

#include <fmt/core.h>

#include "base/clock.h"
#include "base/error.h"
#include "stages/tokenizer_check.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

// The data's tokenizer is checked whether calibration will read shards or not: its hash goes into the artifact.
void find_tokenizer(const WeightSource& source, const QuantizeRequest& request, QuantizingInput& input,
                    std::vector<std::string>& notes) {
  const Identities claim = tokenizer_claim(source);
  std::vector<fs::path> places;
  if (!request.data.empty()) places.emplace_back(request.data);
  if (!source.folder.empty()) places.insert(places.end(), {source.folder / "data", source.folder});
  for (const fs::path& place : places) {
    const bool there = fs::exists(place / "tokenizer.model") || fs::exists(place / "manifest.json");
    if (!there && place != fs::path(request.data)) continue;
    data::FolderTokenizer beside = data::open_tokenizer(place, place == fs::path(request.data) ? request.tokenizer : "");
    require_tokenizer(claim, beside);
    notes = beside.notes;
    if (beside.identity.empty()) continue;
    input.tokenizer = beside.identity;
    if (beside.tokenizer) input.tokenizer_model = beside.tokenizer->bytes();
    return;
  }
  input.tokenizer = source.weights.tokenizer;
}

}  // namespace

WeightSource open_quantizing(const QuantizeRequest& request) {
  std::vector<std::string> overrides = request.overrides;
  if (request.calibration) overrides.push_back(fmt::format("quant.calibration=\"{}\"", name_of(*request.calibration)));
  WeightSource source = open_weights(request.from, request.recipe, overrides);
  if (source.folder.empty() && source.recipe.quant.calibration != Calibration::self && request.data.empty())
    throw InputError(request.from +
                     ": a weight file without its run has no data or Hessians; use --calibration self or --data");
  return source;
}

QuantizingInput prepare_quantizing(const WeightSource& source, const QuantizeRequest& request, SelfCalibration own,
                                   Machine& machine, Communicator& comm, bool quiet) {
  QuantizingInput input;
  std::vector<std::string> notes;
  find_tokenizer(source, request, input, notes);
  const QuantRecipe& quant = source.recipe.quant;
  if (request.tokens > 0) own.tokens = request.tokens;
  const double begun = seconds_now();
  if (wants_hessians(quant) || request.calibration)
    input.hessians = make_hessians({source, quant.calibration, request.data, own}, machine, comm, quiet, &input.text);
  input.calibration_seconds = seconds_now() - begun;
  tell_notes(notes, quiet || !comm.root());
  return input;
}

}  // namespace fairway
