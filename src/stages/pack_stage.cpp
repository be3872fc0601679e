#include "stages/pack_stage.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "stages/quantizing.h"

namespace fairway {
namespace {

std::string artifact_path(const PackRequest& request, const WeightSource& source) {
  if (!request.out.empty()) return request.out;
  if (source.folder.empty())
    throw InputError("--out: expected the name of the artifact, because the weight file has no run folder");
  return (source.folder / "model.fwy").string();
}

// Bytes of the budget that a carried tokenizer takes.
uint64_t room_for_tokenizer(const QuantizingInput& input, uint64_t budget) {
  if (input.tokenizer_model.empty())
    throw InputError("--with-tokenizer: no tokenizer.model in the data folder or beside the run; name the folder with --data");
  const uint64_t bytes = carried_bytes(input.tokenizer_model);
  if (bytes >= budget)
    throw InputError("--budget " + std::to_string(budget) + ": the tokenizer alone takes " + std::to_string(bytes) +
                     " bytes; use a larger budget, or leave out --with-tokenizer");
  return bytes;
}

void carry(const std::string& tokenizer_model, const PackOptions& options, Fitted& fitted) {
  fitted.model.tokenizer_model = tokenizer_model;
  fitted.bytes = write_artifact(fitted.model, fitted.weights, options, &fitted.ledger);
}

}  // namespace

Packed pack_stage(const PackRequest& request, uint64_t code_bytes, const Compute& compute, Communicator& comm) {
  const WeightSource source = open_quantizing(request);
  Packed packed{.path = artifact_path(request, source),
                .folder = source.folder,
                .budget = request.budget > 0 ? request.budget : kChallengeBytes - std::min(code_bytes, kChallengeBytes - 1),
                .calibration = source.recipe.quant.calibration};
  require_place_for_file(packed.path);
  if (comm.root()) packed.locks.push_back(WriterLock::of_file(packed.path));
  if (comm.root() && !source.folder.empty()) packed.locks.push_back(WriterLock::of_folder(source.folder));
  const CodecChoice codec = codec_choice(request.codec);
  Machine machine(compute);
  ProgressLine line(compute.quiet);
  machine.laps.lap("weights");
  // A device makes the published text in seconds; shorter rows were measured on small models only.
  const bool published = request.as_published || machine.executor->on_device();
  const QuantizingInput input = prepare_quantizing(
      source, request, published ? SelfCalibration::as_published() : SelfCalibration{}, machine, comm, compute.quiet);
  if (request.with_tokenizer) packed.tokenizer_bytes = room_for_tokenizer(input, packed.budget);
  const Stopwatch watch;
  const CalibrationRequest calibration{.source = source,
                                       .from = packed.calibration,
                                       .data = request.data,
                                       .text = input.text.tokens.empty() ? nullptr : &input.text,
                                       .hessians = input.found()};
  double moment_seconds = 0;  // part of calibration: of training data they count as training
  const auto moments = [&] {
    const Stopwatch asked;
    TensorMoments made = make_moments(calibration, machine, comm, compute.quiet);
    moment_seconds += asked.seconds();
    return made;
  };
  packed.fitted = fit_model({.weights = *source.weights.params,
                             .recipe = source.recipe,
                             .hessians = input.found(),
                             .site = *machine.executor,
                             .looped = source.weights.looped,
                             .tokenizer = input.tokenizer,
                             .budget = packed.budget - packed.tokenizer_bytes,
                             .codec = codec,
                             .as_published = request.as_published,
                             .say = [&](const std::string& what) { line.say(what); },
                             .moments = moments,
                             .divergence = [&] { return make_divergence(calibration, machine, comm, compute.quiet); },
                             .laps = &machine.laps,
                             .comm = comm});
  if (request.with_tokenizer) carry(input.tokenizer_model, {.codec = codec, .pool = &machine.queue.pool()}, packed.fitted);
  for (const std::string& fallback : packed.fitted.report.fallbacks()) line.say(fallback);
  packed.calibration_seconds = input.calibration_seconds + moment_seconds;
  packed.fit_seconds = watch.seconds() - moment_seconds;
  if (comm.root()) save_artifact(packed.path, packed.fitted.bytes);  // the others have the same bytes
  machine.laps.lap("file");
  packed.stages = machine.laps.stages();
  return packed;
}

}  // namespace fairway
