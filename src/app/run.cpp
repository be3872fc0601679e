// `fairway run`: a recipe to a report in one folder; over several seeds; or a sweep of settings.
#include <fmt/core.h>

#include "app/named_inputs.h"
#include "app/plan_run.h"
#include "app/run_memory.h"
#include "app/score_forecast.h"
#include "app/stages.h"
#include "artifact/artifact.h"
#include "audit/audit.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "base/sha256.h"
#include "pipeline/seeds.h"
#include "pipeline/sweep.h"
#include "stages/held_out.h"
#include "stages/ranks.h"

namespace fairway::app {
namespace {

struct RunFlags {
  pipeline::ChainRequest chain;
  std::string seeds;
  std::vector<std::string> sweep, against, prompts;
  double seconds = -1, score_seconds = kMostSeconds;
  int64_t steps = -1, seed = -1;
  int factor = 2;
};

pipeline::ChainRequest chain_of(const RunFlags& flags) {
  pipeline::ChainRequest chain = flags.chain;
  std::vector<std::string>& set = chain.overrides;
  if (flags.seconds >= 0 && flags.steps >= 0) throw InputError("--seconds and --steps: give only one of them");
  if (flags.seconds >= 0) set.insert(set.end(), {fmt::format("train.seconds={}", flags.seconds), "train.steps=0"});
  if (flags.steps >= 0) set.push_back(fmt::format("train.steps={}", flags.steps));
  if (flags.seed >= 0) set.push_back(fmt::format("train.seed={}", flags.seed));
  if (!flags.prompts.empty()) chain.prompts = flags.prompts;
  chain.data = std::filesystem::absolute(chain.data).lexically_normal().string();
  if (!chain.tokenizer_file.empty())
    chain.tokenizer_file = std::filesystem::absolute(chain.tokenizer_file).lexically_normal().string();
  chain.program = sha256_of_file("/proc/self/exe");
  return chain;
}

void require_one_process_for_many_runs(const RunFlags& flags) {
  const Launch launch = find_launch();
  if (flags.seeds.empty() && flags.sweep.empty()) return;
  if (launch.kind == Launch::Kind::mpi)
    throw InputError(fmt::format("{} = {}: --seeds and --sweep run in one process only", launch.variable, launch.size));
  if (launch.kind == Launch::Kind::own)
    throw InputError(
        fmt::format("{} ranks: --seeds and --sweep run in one process only; leave out --gpus or --ranks", launch.size));
}

// What a later phase would refuse is refused before hours of training; the chain learns the data's tokenizer.
HeldOut require_held_out(const Recipe& recipe, pipeline::ChainRequest& chain) {
  std::optional<HeldOut> held_out = open_held_out(chain.data, recipe, nullptr, chain.tokenizer_file);
  if (!held_out)
    throw InputError("--data " + chain.data +
                     ": no validation shards (fineweb_val_*.bin); `run` needs them to score, `train` does not");
  require_one_window(static_cast<int64_t>(held_out->tokens.size()), std::max(recipe.data.seq_len, recipe.score.context),
                     chain.data);
  chain.tokenizer = held_out->tokenizer.identity();
  for (const auto* files : {&held_out->shards, &held_out->count_files})
    for (const FileIdentity& file : *files) chain.held_out += file.sha256;
  return std::move(*held_out);
}

pipeline::Stages stages_on(const Compute& compute, Communicator& comm) {
  return {
      .train = [&](const TrainRequest& request) { return do_train(request, compute, comm); },
      .pack = [&](const PackRequest& request) { return do_pack(request, compute, comm); },
      .score = [&](const ScoreRequest& request, const std::string& keep) { return do_score(request, keep, 0, compute, comm); },
      .audit = [&](const pipeline::AuditRequest& request) { return do_audit(request, compute); },
      .samples = [&](const pipeline::SamplesRequest& request) { return do_samples(request, compute); },
      .report = [](const std::filesystem::path& folder) { return do_report({folder}, folder / "report.html"); }};
}

int run_one(const CommonFlags& common, pipeline::ChainRequest chain, Communicator& comm, const pipeline::Say& say) {
  chain.helper_rank = !comm.root();
  if (comm.size() > 1)
    chain.agree = [&comm](bool mine) {
      float answer = mine ? 1 : 0;
      comm.broadcast(make_view(&answer, {{1}, DType::f32}));
      return answer > 0;
    };
  const pipeline::ChainResult result = run_chain(chain, stages_on(common, comm), say);
  const bool ended = result.status != pipeline::kInterrupted;
  if (comm.root()) print_result(common, result.summary, ended ? pipeline::summary_text(result.summary) : "");
  return result.status;
}

int run_pipeline(CommonFlags common, const RunFlags& flags) {
  const GoesOn goes_on("--resume", common.quiet);
  require_recipe(flags.chain.recipe);
  require_data(flags.chain.data);
  pipeline::ChainRequest chain = chain_of(flags);
  if (!flags.seeds.empty() && !flags.sweep.empty()) throw InputError("--seeds and --sweep: give only one of them");
  if (!flags.seeds.empty() && flags.seed >= 0) throw InputError("--seeds and --seed: give only one of them");
  if (!flags.against.empty() && flags.seeds.empty())
    throw InputError("--against: a test needs several seeds; add --seeds 1,2,3");
  require_one_process_for_many_runs(flags);
  const Recipe recipe = load_recipe(chain.recipe, chain.overrides);
  const HeldOut held_out = require_held_out(recipe, chain);
  codec_choice(chain.packing.codec);
  if (!chain.from.empty())
    fork_of({.recipe = recipe,
             .data = chain.data,
             .out = chain.out,
             .resume = chain.resume,
             .tokenizer = chain.tokenizer_file,
             .from = chain.from});
  Communicator& comm = meet_ranks(common);
  if (flags.score_seconds > 0 && !chain.resume && flags.sweep.empty())  // a sweep only trains
    require_score_time(recipe, held_out, flags.score_seconds, common, comm);
  if (comm.root() && !chain.resume && flags.sweep.empty())
    require_budget(recipe, chain.packing, data::open_tokenizer(chain.data, chain.tokenizer_file), common);
  ProgressLine line(common.quiet);
  const pipeline::Say say = [&](const std::string& text) { line.say(text); };
  if (flags.seeds.empty() && flags.sweep.empty()) return goes_on.told(run_one(common, chain, comm, say));
  if (!flags.seeds.empty()) {
    const auto result = run_seeds({chain, pipeline::parse_seeds(flags.seeds), flags.against}, stages_on(common, comm), say);
    print_result(common, result.result, result.text);
    return goes_on.told(result.status);
  }
  const auto result = run_sweep({chain, flags.sweep, flags.factor}, stages_on(common, comm), say);
  print_result(common, result.result, result.text);
  return goes_on.told(result.status);
}

}  // namespace

void add_run(CLI::App& program) {
  constexpr int64_t kMost = 1'000'000'000'000;
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = add_command(
      program, "run", "the whole pipeline: train, pack, score, audit, samples, report",
      [flags](const CommonFlags& common) { return run_pipeline(common, *flags); }, Ranks::shared);
  command->add_option("RECIPE", flags->chain.recipe, "a built-in recipe or a TOML file")->required();
  command->add_option("--data", flags->chain.data, "folder of shards, with validation shards and tokenizer.model")->required();
  command->add_option("--tokenizer", flags->chain.tokenizer_file,
                      "SentencePiece model of the shards (default: tokenizer.model in --data)");
  command->add_option("--out", flags->chain.out, "folder of the run")->required();
  command->add_option("--seconds", flags->seconds, "train this long")->check(number_between(0.001, 1e7));
  command->add_option("--steps", flags->steps, "train this many steps")->check(CLI::Range(int64_t{1}, kMost));
  command->add_option("--seed", flags->seed, "seed of weights and data order")->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
  command->add_option("--set", flags->chain.overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_flag("--resume", flags->chain.resume,
                    "continue where the folder's ledger ends; with more steps or seconds, train on and do the rest again");
  add_memory(*command, flags->chain.memory);
  command->add_option("--from", flags->chain.from, "begin with the weights of another run, an artifact or a .safetensors file");
  add_allow_shared(*command, flags->chain.allow_shared);
  command->add_option("--seeds", flags->seeds, "1,2,3: one run for each seed, then their statistics");
  command->add_option("--against", flags->against, "with --seeds: runs or a published system (pr1019) to compare with");
  command->add_option("--sweep", flags->sweep, "key=a,b,c (repeatable): every combination, by successive halving");
  command
      ->add_option("--halving", flags->factor,
                   "with --sweep: keep one trial in this many, and give it this many times the budget")
      ->capture_default_str()
      ->check(CLI::Range(2, 16));
  command->add_option("--score-seconds", flags->score_seconds, "refuse to begin if scoring would take longer (0: any time)")
      ->capture_default_str()
      ->check(number_between(0, 1e9));
  add_budget(*command, flags->chain.packing.budget);
  command->add_option("--codec", flags->chain.packing.codec, "codec of the artifact: best, rans, brotli or lzma");
  command->add_flag("--as-published", flags->chain.packing.as_published,
                    "pack the recipe's own setting instead of the best model for the budget");
  command->add_flag("--with-tokenizer", flags->chain.packing.with_tokenizer,
                    "the artifact carries its tokenizer, within the budget");
  command->add_option("--prompt", flags->prompts, "start of a sample text (repeatable; default: \"The \")");
}

}  // namespace fairway::app
