#include "stages/train_stage.h"

#include <sys/resource.h>

#include "base/error.h"
#include "base/file.h"
#include "ops/cpu/peak.h"
#include "ops/cuda/device.h"
#include "pack/forecast.h"
#include "stages/calibration.h"
#include "stages/held_out.h"
#include "stages/kept_apart.h"
#include "train/loader_settings.h"

namespace fairway {
namespace {

// Rank 0 owns the folder; the others begin once it has taken it.
std::unique_ptr<RunFolder> open_folder(const TrainRequest& request, Communicator& comm) {
  auto folder =
      comm.root() ? std::make_unique<RunFolder>(request.out, request.recipe, request.resume) : std::make_unique<RunFolder>();
  comm.barrier();
  return folder;
}

std::function<double()> peak_of(Machine& machine) {  // a device's speed of light is not the CPU's
  if (machine.executor->backend() == Backend::cpu) return [&] { return cpu::fma_peak_gflops(machine.queue.pool(), 0.01); };
  if (machine.executor->backend() == Backend::cuda) return [] { return cuda::peak_flops().bf16 * 1e-9; };
  return {};
}

// A device keeps what a program has taken once, so that what is in use at the end is the most.
double memory_of(const Machine& machine) {
  if (machine.executor->backend() == Backend::cuda) return static_cast<double>(cuda::used_bytes());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace

TrainSummary train_stage(const TrainRequest& request, const Compute& compute, Communicator& comm, const ParamStore* start) {
  const Recipe& recipe = request.recipe;
  if (!request.profile.empty()) require_place_for_file(request.profile);
  emulated_share(recipe.train.emulated_world, comm.size());  // refused before data is read
  const data::ShardSet shards = data::ShardSet::open_train(request.data);
  const data::FolderTokenizer tokenizer = data::open_tokenizer(request.data, request.tokenizer);
  const std::optional<HeldOut> held_out = open_held_out(request.data, recipe, nullptr, request.tokenizer);
  if (held_out) require_one_window(static_cast<int64_t>(held_out->tokens.size()), recipe.data.seq_len, request.data.string());
  data::SharedDocuments shared;
  if (comm.root()) shared = require_apart(request, held_out);
  data::Loader loader(shards, sampler_options(recipe), loader_options(recipe, comm));
  const auto folder = open_folder(request, comm);
  if (comm.root()) write_shared(request, shared, held_out);
  if (comm.root() && !request.origin.empty()) write_file_atomic(request.out / "origin.json", request.origin);
  Machine machine(compute);
  Trainer trainer(recipe, micro_batch_geometry(recipe), *machine.executor, comm);
  TrainOptions options{.resume = request.resume,
                       .quiet = compute.quiet,
                       .seed = static_cast<uint64_t>(recipe.train.seed),
                       .start = start,
                       .started = request.started,
                       .tokenizer = tokenizer.identity,
                       .tokenizer_told_by = tokenizer.file.string(),
                       .profile = request.profile,
                       .note = request.note};
  options.measure_peak = peak_of(machine);
  if (request.peak_gflops > 0) options.measure_peak = [&] { return request.peak_gflops; };
  options.memory_bytes = [&] { return memory_of(machine); };
  if (held_out)
    options.validate = make_validator(recipe, *held_out, {machine.executor.get(), &machine.queue.pool()}, comm, compute.quiet);
  SizeForecast forecast(recipe, *machine.executor);
  options.forecast_bytes = [&](const Tensor& weights) {
    try {
      return static_cast<double>(forecast.bytes(weights));
    } catch (const InputError&) {  // weights that no grid takes have no size; what is wrong with them is the loop's to say
      return 0.0;
    }
  };
  options.counted_after = [&] { return foresee_calibration(recipe, trainer.params(), shards, machine, comm); };
  std::optional<OnlineBesideTraining> online;
  if (comm.root()) online.emplace(recipe, trainer, shards, *folder, machine, options);  // the others wait for it
  const TrainSummary summary = train(recipe, trainer, loader, *folder, machine.queue.pool(), options);
  tell_notes(tokenizer.notes, compute.quiet || !comm.root());
  return summary;
}

}  // namespace fairway
