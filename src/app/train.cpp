// `fairway train`.
#include <fmt/core.h>

#include "app/calibration.h"
#include "app/command.h"
#include "app/machine_facts.h"
#include "app/ranks.h"
#include "app/validation.h"
#include "artifact/forecast.h"
#include "base/error.h"
#include "base/file.h"
#include "ops/cpu/peak.h"
#include "ops/cuda/device.h"
#include "train/loader_settings.h"

namespace fairway::app {
namespace {

const double kProcessStart = steady_seconds();

struct TrainFlags {
  std::string recipe, data, out, comm = "auto", profile;
  std::vector<std::string> overrides;
  double seconds = -1;
  int64_t steps = -1, seed = -1;
  bool resume = false;
};

Recipe resolved_recipe(const TrainFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (flags.seconds >= 0 && flags.steps >= 0) throw InputError("--seconds and --steps: give one of them");
  if (flags.seconds >= 0) overrides.insert(overrides.end(), {fmt::format("train.seconds={}", flags.seconds), "train.steps=0"});
  if (flags.steps >= 0) overrides.push_back(fmt::format("train.steps={}", flags.steps));
  if (flags.seed >= 0) overrides.push_back(fmt::format("train.seed={}", flags.seed));
  return load_recipe(flags.recipe, overrides);
}

nlohmann::ordered_json to_json(const TrainSummary& s) {
  nlohmann::ordered_json out{{"steps", s.steps},
                             {"step_ms", s.step_ms},
                             {"train_seconds", s.train_seconds},
                             {"tokens_per_second", s.tokens_per_second},
                             {"speed_of_light", s.speed_of_light},
                             {"loss", s.loss},
                             {"data_wait_seconds", s.data_wait_seconds},
                             {"interrupted", s.interrupted},
                             {"seconds", {{"startup", s.startup_seconds}, {"train", s.train_seconds}}}};
  if (s.validation) {
    out["val_loss"] = s.validation->loss;
    out["val_bpb"] = s.validation->bpb;
    out["seconds"]["score"] = s.validation->seconds;
  }
  return out;
}

std::string to_text(const TrainSummary& s, const std::string& out) {
  std::string text =
      fmt::format("{} steps in {:.1f} s ({:.1f} ms each, {:.0f} tokens/s, {:.0f}% of speed of light), last loss {:.4f}\n",
                  s.steps, s.train_seconds, s.step_ms, s.tokens_per_second, 100 * s.speed_of_light, s.loss);
  if (s.validation)
    text += fmt::format("validation: {:.4f} nats per token, {:.4f} bits per byte\n", s.validation->loss, s.validation->bpb);
  return text + fmt::format("results in {}\n", out);
}

// Rank 0 owns the folder; the others begin once it has taken it.
std::unique_ptr<RunFolder> open_folder(const TrainFlags& flags, const Recipe& recipe, Communicator& comm) {
  auto folder = comm.root() ? std::make_unique<RunFolder>(flags.out, recipe, flags.resume) : std::make_unique<RunFolder>();
  comm.barrier();
  return folder;
}

int run_train(CommonFlags common, const TrainFlags& flags) {
  const double started = inside_another() ? steady_seconds() : kProcessStart;
  if (!flags.profile.empty()) require_place_for_file(flags.profile);
  Communicator& comm = meet_ranks(common, flags.comm);
  const Recipe recipe = resolved_recipe(flags);
  emulated_share(recipe.train.emulated_world, comm.size());  // refused before data is read
  const data::ShardSet shards = data::ShardSet::open_train(flags.data);
  const data::FolderTokenizer tokenizer = data::open_tokenizer(flags.data);
  const std::optional<HeldOut> held_out = open_held_out(flags.data, recipe);
  if (held_out) require_one_window(static_cast<int64_t>(held_out->tokens.size()), recipe.data.seq_len, flags.data);
  data::Loader loader(shards, sampler_options(recipe), loader_options(recipe, comm));
  const auto folder = open_folder(flags, recipe, comm);
  Machine machine(common);
  Trainer trainer(recipe, micro_batch_geometry(recipe), *machine.executor, comm);
  TrainOptions options{.resume = flags.resume,
                       .quiet = common.quiet,
                       .seed = static_cast<uint64_t>(recipe.train.seed),
                       .started = started,
                       .tokenizer = tokenizer.identity,
                       .tokenizer_told_by = tokenizer.file.string(),
                       .profile = flags.profile};
  if (machine.executor->backend() == Backend::cpu)  // a device's speed of light is not the CPU's
    options.measure_peak = [&] { return cpu::fma_peak_gflops(machine.queue.pool(), 0.01); };
  else if (machine.executor->backend() == Backend::cuda)
    options.measure_peak = [] { return cuda::kPeakFlops * 1e-9; };
  if (held_out)
    options.validate = make_validator(recipe, *held_out, {machine.executor.get(), &machine.queue.pool()}, comm, common.quiet);
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
  tell_notes(tokenizer.notes, common.quiet || !comm.root());
  if (comm.root()) {
    write_file_atomic(std::filesystem::path(flags.out) / "machine.json",
                      machine_facts(machine.queue.pool(), 0.01).dump(2) + "\n");
    print_result(common, to_json(summary), to_text(summary, flags.out));
  }
  return summary.interrupted ? 130 : 0;
}

}  // namespace

void add_train(CLI::App& program) {
  constexpr int64_t kMost = 1'000'000'000'000;
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = add_command(program, "train", "train a recipe and average its weights",
                                  [flags](const CommonFlags& common) { return run_train(common, *flags); });
  command->add_option("RECIPE", flags->recipe, "a built-in recipe or a TOML file")->required();
  command->add_option("--data", flags->data, "folder of shards")->required();
  command->add_option("--out", flags->out, "folder of the run")->required();
  command->add_option("--seconds", flags->seconds, "train this long")->check(number_between(0.001, 1e7));
  command->add_option("--steps", flags->steps, "train this many steps")->check(CLI::Range(int64_t{1}, kMost));
  command->add_option("--seed", flags->seed, "seed of weights and data order")->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_option("--comm", flags->comm, "what carries tensors between ranks on devices: auto, mpi or nccl")
      ->capture_default_str();
  command->add_option("--profile", flags->profile,
                      "write a timeline of steps 3 to 7 (Chrome's trace format), and tell where a step's time goes");
  command->add_flag("--resume", flags->resume, "go on from the last checkpoint in --out");
}

}  // namespace fairway::app
