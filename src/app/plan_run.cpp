#include "app/plan_run.h"

#include <fmt/core.h>

#include <array>
#include <fstream>

#include "app/machine_facts.h"
#include "artifact/artifact.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "bundle/code_bytes.h"
#include "model/initialize.h"
#include "model/shape/model_shape.h"
#include "ops/cpu/peak.h"
#include "ops/cuda/device.h"
#include "pipeline/training_memory.h"
#include "quant/quantize_model.h"
#include "stages/pack_stage.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace fairway::app {
namespace {

constexpr double kMiB = 1 << 20;

double number_in(const char* path) {
  std::ifstream in(path);
  double value = -1;
  in >> value;  // "max": none
  return in ? value : -1;
}

// Of the machine, or of the group of processes that this one is put into.
double free_host_bytes() {
  const double machine = meminfo_bytes("MemAvailable"), limit = number_in("/sys/fs/cgroup/memory.max"),
               used = number_in("/sys/fs/cgroup/memory.current");
  if (limit < 0 || used < 0) return machine;
  return machine < 0 ? limit - used : std::min(machine, limit - used);
}

// Of what a rank computes on; below zero: not known. Ranks that share a machine's memory, or a card's, share what is free of
// it.
double free_bytes(const TrainRequest& request, Backend backend, const Communicator& comm) {
  if (request.memory > 0) return static_cast<double>(request.memory);
  if (backend == Backend::ref || backend == Backend::cpu) return free_host_bytes() / comm.local_size();
  const auto cards = static_cast<int>(cuda::devices().size());
  const int sharing = (comm.local_size() + cards - 1) / cards;
  return (static_cast<double>(cuda::devices().front().memory_bytes) - static_cast<double>(cuda::used_bytes())) / sharing;
}

// Smaller micro-batches that the recipe's other keys allow, the largest first.
std::vector<int64_t> micro_batches_of(const Recipe& recipe) {
  const int64_t rank = recipe.train.batch_tokens / recipe.train.emulated_world, length = recipe.data.seq_len;
  std::vector<int64_t> out;
  for (int64_t rows = recipe.train.micro_batch_tokens / length; rows >= 1; --rows)
    if (rank % (rows * length) == 0) out.push_back(rows * length);
  return out;
}

TrainingPlan fit_memory(const TrainRequest& request, const Compute& compute, const Communicator& comm) {
  const Recipe& recipe = request.recipe;
  const Backend backend = parse_backend(compute.backend);
  const double free = free_bytes(request, backend, comm);
  const int64_t asked = recipe.train.micro_batch_tokens;
  if (free < 0) return {asked, ""};
  const auto needed = [&](int64_t tokens) { return pipeline::training_bytes(recipe, tokens, backend); };
  const double whole = needed(asked);
  if (whole <= free) return {asked, ""};
  const std::vector<int64_t> smaller = micro_batches_of(recipe);
  for (const int64_t tokens : smaller) {
    if (needed(tokens) > free) continue;
    return {tokens,
            fmt::format("train.micro_batch_tokens is {} instead of {}, which would take {:.1f} MiB of memory where {:.1f} are "
                        "free; sums are rounded in another order{}",
                        tokens, asked, whole / kMiB, free / kMiB,
                        packs_documents(recipe) ? ", and documents are packed into shorter rows" : "")};
  }
  throw InputError(
      fmt::format("train.micro_batch_tokens = {}: training would take {:.1f} MiB of memory, {:.1f} MiB with the {} tokens that "
                  "are the fewest "
                  "possible, but {:.1f} MiB are free; use a smaller model or data.seq_len{}",
                  asked, whole / kMiB, needed(smaller.back()) / kMiB, smaller.back(), free / kMiB,
                  request.memory > 0 ? ", or a larger --memory" : ""));
}

// Of a run that this command continues.
std::optional<int64_t> kept_micro_batch(const TrainRequest& request) {
  const std::filesystem::path path = request.out / "recipe.toml";
  if (!request.resume || !std::filesystem::exists(path) || !holds_run(request.out)) return std::nullopt;
  return parse_recipe(read_file(path), path.string()).train.micro_batch_tokens;
}

}  // namespace

TrainingPlan plan_micro_batch(const TrainRequest& request, const Compute& compute, Communicator& comm) {
  const int64_t asked = request.recipe.train.micro_batch_tokens;
  TrainingPlan plan{asked, ""};
  if (comm.root()) {
    if (const auto kept = kept_micro_batch(request))
      plan.micro_batch_tokens = std::min(asked, *kept);
    else
      plan = fit_memory(request, compute, comm);
  }
  double agreed = static_cast<double>(plan.micro_batch_tokens);
  comm.broadcast(make_view(&agreed, {{1}, DType::f64}));
  plan.micro_batch_tokens = static_cast<int64_t>(agreed);
  return plan;
}

void require_time_for_a_step(const Recipe& recipe, const Compute& compute, const Communicator& comm) {
  if (schedule_clock(recipe) != ScheduleClock::time || compute.backend == "ref") return;
  double peak = cuda::peak_flops().bf16;  // FLOP/s
  if (compute.backend == "cpu") {
    ThreadPool pool(compute.threads == 0 ? hardware_threads() : compute.threads);
    peak = 1e9 * cpu::fma_peak_gflops(pool, 0.01);
  }
  const double flops =
      flops_per_token(recipe.model, recipe.data.seq_len, false) * static_cast<double>(recipe.train.batch_tokens);
  const double least = flops / (peak * comm.size()), seconds = recipe.train.seconds - recipe.train.reserve_seconds;
  if (least <= seconds) return;
  throw InputError(
      fmt::format("train.seconds = {:g}: one step of {} tokens takes at least {:.3g} s at the peak of this machine ({:.3g} "
                  "GFLOP/s); give more "
                  "seconds, or fewer train.batch_tokens",
                  seconds, recipe.train.batch_tokens, least, peak * comm.size() * 1e-9));
}

void require_budget(const Recipe& recipe, const PackRequest& packing, const data::FolderTokenizer& tokenizer,
                    const Compute& compute) {
  constexpr double kSure = 0.9;  // trained weights may be coded a little shorter
  const uint64_t code = static_cast<uint64_t>(code_bytes());
  const uint64_t budget = packing.budget > 0 ? packing.budget : kChallengeBytes - std::min(code, kChallengeBytes - 1);
  if (budget >= static_cast<uint64_t>(parameter_count(recipe.model)) / 3 && !packing.with_tokenizer)
    return;  // at 2 bits it fits
  Machine machine(compute);
  ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
  initialize(params, recipe.model, 1, machine.queue.pool());
  Recipe coarse = recipe;
  coarse.quant = {.rule = QuantRule::rtn, .matrix_bits = 2, .token_bits = 2, .table_bits = 2, .half_elements = 0};
  QuantReport report;
  QuantizedModel model = quantize_model(params, coarse, nullptr, *machine.executor, report);
  model.looped = recipe.model.loop.count > 0;
  double least = static_cast<double>(write_artifact(model, {.pool = &machine.queue.pool()}).size());
  if (packing.with_tokenizer && tokenizer.tokenizer) least += static_cast<double>(carried_bytes(tokenizer.tokenizer->bytes()));
  if (kSure * least <= static_cast<double>(budget)) return;
  throw InputError(
      fmt::format("--budget {}: the coarsest file of this recipe takes about {:.0f} bytes before training{}; use a larger "
                  "budget or a smaller "
                  "model",
                  budget, least, packing.with_tokenizer ? ", its tokenizer among them" : ""));
}

}  // namespace fairway::app
