// `fairway train`.
#include <fmt/core.h>

#include "app/kept_peak.h"
#include "app/machine_facts.h"
#include "app/named_inputs.h"
#include "app/plan_run.h"
#include "app/run_memory.h"
#include "app/stages.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "stages/ranks.h"
#include "stages/train_stage.h"

namespace fairway::app {
namespace {

const double kProcessStart = seconds_now();

struct TrainFlags {
  std::string recipe, data, tokenizer, out, from, comm = "auto", profile;
  std::vector<std::string> overrides;
  double seconds = -1;
  int64_t steps = -1, seed = -1;
  uint64_t memory = 0;
  bool resume = false, allow_shared = false;
};

Recipe resolved_recipe(const TrainFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (flags.seconds >= 0 && flags.steps >= 0) throw InputError("--seconds and --steps: give only one of them");
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
      fmt::format("{} steps in {:.1f} s, {:.1f} ms each, last loss {:.4f}\n{:.0f} tokens/s, {:.0f}% of the speed of light\n",
                  s.steps, s.train_seconds, s.step_ms, s.loss, s.tokens_per_second, 100 * s.speed_of_light);
  if (s.validation)
    text += fmt::format("validation: {:.4f} nats per token, {:.4f} bits per byte\n", s.validation->loss, s.validation->bpb);
  return text + fmt::format("results in {}\n", out);
}

int run_train(CommonFlags common, const TrainFlags& flags) {
  const GoesOn goes_on("--resume", common.quiet);
  Communicator& comm = meet_ranks(common, flags.comm);
  require_recipe(flags.recipe);
  require_data(flags.data);
  const TrainRequest request{.recipe = resolved_recipe(flags),
                             .data = flags.data,
                             .out = flags.out,
                             .resume = flags.resume,
                             .allow_shared = flags.allow_shared,
                             .profile = flags.profile,
                             .started = kProcessStart,
                             .tokenizer = flags.tokenizer,
                             .from = flags.from,
                             .memory = flags.memory};
  const pipeline::Outcome outcome = do_train(request, common, comm);
  if (comm.root()) print_result(common, outcome.result, outcome.text);
  return goes_on.told(outcome.status);
}

}  // namespace

pipeline::Outcome do_train(const TrainRequest& asked, const Compute& compute, Communicator& comm) {
  TrainRequest request = asked;
  require_time_for_a_step(request.recipe, compute, comm);
  const TrainingPlan plan = plan_micro_batch(request, compute, comm);
  request.recipe.train.micro_batch_tokens = plan.micro_batch_tokens;
  request.note = plan.note;
  const std::optional<ForkedWeights> fork = fork_of(request);
  request.origin = origin_text(origin_of(request, fork ? std::optional(fork->fork) : std::nullopt));
  if (compute.backend == "cpu") {
    ThreadPool pool(compute.threads == 0 ? hardware_threads() : compute.threads);
    request.peak_gflops = kept_peak_gflops(pool);
  }
  const TrainSummary summary = train_stage(request, compute, comm, fork ? fork->params.get() : nullptr);
  const int status = summary.interrupted ? pipeline::kInterrupted : 0;
  if (!comm.root()) return {status, {}, {}};
  ThreadPool pool(compute.threads == 0 ? hardware_threads() : compute.threads);
  nlohmann::ordered_json machine = machine_facts(pool);
  machine["launch"] = launch_facts(compute, comm.size());
  write_file_atomic(request.out / "machine.json", machine.dump(2) + "\n");
  return {status, to_json(summary), to_text(summary, request.out.string())};
}

void add_train(CLI::App& program) {
  constexpr int64_t kMost = 1'000'000'000'000;
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = add_command(
      program, "train", "train a recipe and average its weights",
      [flags](const CommonFlags& common) { return run_train(common, *flags); }, Ranks::shared);
  command->add_option("RECIPE", flags->recipe, "a built-in recipe or a TOML file")->required();
  command->add_option("--data", flags->data, "folder of shards")->required();
  command->add_option("--tokenizer", flags->tokenizer,
                      "SentencePiece model of the shards (default: tokenizer.model in --data)");
  command->add_option("--out", flags->out, "folder of the run")->required();
  command->add_option("--seconds", flags->seconds, "train this long")->check(number_between(0.001, 1e7));
  command->add_option("--steps", flags->steps, "train this many steps")->check(CLI::Range(int64_t{1}, kMost));
  command->add_option("--seed", flags->seed, "seed of weights and data order")->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_option("--comm", flags->comm, "how tensors travel between ranks on devices: auto, mpi or nccl")
      ->capture_default_str();
  command->add_option("--profile", flags->profile,
                      "write a timeline of steps 3 to 7 (Chrome's trace format), and print where a step's time goes");
  command->add_flag("--resume", flags->resume,
                    "continue from the last checkpoint in --out; with more steps or seconds, go on longer");
  add_memory(*command, flags->memory);
  command->add_option("--from", flags->from, "begin with the weights of another run, an artifact or a .safetensors file");
  add_allow_shared(*command, flags->allow_shared);
}

}  // namespace fairway::app
