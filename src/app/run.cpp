// `fairway run`: a recipe to a report in one folder; over several seeds; or a sweep of settings.
#include <fmt/core.h>

#include "app/ranks.h"
#include "app/validation.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "base/sha256.h"
#include "pipeline/seeds.h"
#include "pipeline/sweep.h"

namespace fairway::app {
namespace {

struct RunFlags {
  pipeline::ChainRequest chain;
  std::string seeds;
  std::vector<std::string> sweep, against, prompts;
  double seconds = -1;
  int64_t steps = -1, seed = -1;
  uint64_t budget = 0;  // 0: not given
  int factor = 2;
  std::string codec;
  bool as_published = false;
};

pipeline::ChainRequest chain_of(const CommonFlags& common, const RunFlags& flags) {
  pipeline::ChainRequest chain = flags.chain;
  std::vector<std::string>& set = chain.overrides;
  if (flags.seconds >= 0 && flags.steps >= 0) throw InputError("--seconds and --steps: give one of them");
  if (flags.seconds >= 0) set.insert(set.end(), {fmt::format("train.seconds={}", flags.seconds), "train.steps=0"});
  if (flags.steps >= 0) set.push_back(fmt::format("train.steps={}", flags.steps));
  if (flags.seed >= 0) set.push_back(fmt::format("train.seed={}", flags.seed));
  chain.backend = {"--backend", common.backend, "--threads", fmt::format("{}", common.threads)};
  if (common.quiet) chain.backend.emplace_back("--quiet");
  if (flags.budget > 0) chain.packing.insert(chain.packing.end(), {"--budget", fmt::format("{}", flags.budget)});
  if (!flags.codec.empty()) chain.packing.insert(chain.packing.end(), {"--codec", flags.codec});
  if (flags.as_published) chain.packing.emplace_back("--as-published");
  if (!flags.prompts.empty()) chain.prompts = flags.prompts;
  chain.data = std::filesystem::absolute(chain.data).lexically_normal().string();
  chain.program = sha256_of_file("/proc/self/exe");
  return chain;
}

// What a later phase would refuse is refused before hours of training; the chain learns the data's tokenizer.
void require_data(pipeline::ChainRequest& chain) {
  const Recipe recipe = load_recipe(chain.recipe, chain.overrides);
  const std::optional<HeldOut> held_out = open_held_out(chain.data, recipe);
  if (!held_out)
    throw InputError("--data " + chain.data +
                     ": no validation shards (fineweb_val_*.bin), which `run` scores; `train` needs none");
  require_one_window(static_cast<int64_t>(held_out->tokens.size()), std::max(recipe.data.seq_len, recipe.score.context),
                     chain.data);
  chain.tokenizer = held_out->tokenizer.identity();
  for (const auto* files : {&held_out->shards, &held_out->count_files})
    for (const FileIdentity& file : *files) chain.held_out += file.sha256;
}

pipeline::Execute executor() {
  return [](pipeline::Arguments command) {
    command.emplace_back("--json");  // no text on standard output while it works: `run` prints one result at its end
    CommandOutcome outcome = run_command(command);
    return pipeline::Outcome{outcome.status, std::move(outcome.result)};
  };
}

int run_one(CommonFlags common, pipeline::ChainRequest chain) {
  Communicator& comm = meet_ranks(common);
  chain.helper_rank = !comm.root();
  if (comm.size() > 1)
    chain.agree = [&comm](bool mine) {
      float answer = mine ? 1 : 0;
      comm.broadcast(make_view(&answer, {{1}, DType::f32}));
      return answer > 0;
    };
  ProgressLine line(common.quiet);
  const pipeline::ChainResult result = run_chain(chain, executor(), [&](const std::string& text) { line.say(text); });
  if (comm.root()) print_result(common, result.summary, pipeline::summary_text(result.summary));
  return result.status;
}

int run_pipeline(const CommonFlags& common, const RunFlags& flags) {
  pipeline::ChainRequest chain = chain_of(common, flags);
  if (!flags.seeds.empty() && !flags.sweep.empty()) throw InputError("--seeds and --sweep: give one of them");
  if (!flags.seeds.empty() && flags.seed >= 0) throw InputError("--seeds and --seed: give one of them");
  if (!flags.against.empty() && flags.seeds.empty())
    throw InputError("--against: a test needs several seeds; add --seeds 1,2,3");
  if (const Launch launch = find_launch(); launch.kind == Launch::Kind::mpi && !(flags.seeds.empty() && flags.sweep.empty()))
    throw InputError(fmt::format("{} = {}: --seeds and --sweep work in one process", launch.variable, launch.size));
  require_data(chain);
  if (flags.seeds.empty() && flags.sweep.empty()) return run_one(common, chain);
  ProgressLine line(common.quiet);
  const pipeline::Say say = [&](const std::string& text) { line.say(text); };
  if (!flags.seeds.empty()) {
    const auto result = run_seeds({chain, pipeline::parse_seeds(flags.seeds), flags.against}, executor(), say);
    print_result(common, result.result, result.text);
    return result.status;
  }
  const auto result = run_sweep({chain, flags.sweep, flags.factor}, executor(), say);
  print_result(common, result.result, result.text);
  return result.status;
}

}  // namespace

void add_run(CLI::App& program) {
  constexpr int64_t kMost = 1'000'000'000'000;
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = add_command(program, "run", "a recipe to a report: train, pack, score, audit, samples, page",
                                  [flags](const CommonFlags& common) { return run_pipeline(common, *flags); });
  command->add_option("RECIPE", flags->chain.recipe, "a built-in recipe or a TOML file")->required();
  command->add_option("--data", flags->chain.data, "folder of shards, with validation shards and tokenizer.model")->required();
  command->add_option("--out", flags->chain.out, "folder of the run")->required();
  command->add_option("--seconds", flags->seconds, "train this long")->check(number_between(0.001, 1e7));
  command->add_option("--steps", flags->steps, "train this many steps")->check(CLI::Range(int64_t{1}, kMost));
  command->add_option("--seed", flags->seed, "seed of weights and data order")->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
  command->add_option("--set", flags->chain.overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_flag("--resume", flags->chain.resume, "go on where the folder's ledger stands");
  command->add_option("--seeds", flags->seeds, "1,2,3: one run for each, then their statistics");
  command->add_option("--against", flags->against, "with --seeds: runs or a published system (pr1019) to compare with");
  command->add_option("--sweep", flags->sweep, "key=a,b,c (repeatable): every combination, by successive halving");
  command->add_option("--halving", flags->factor, "of --sweep: one of so many goes on, for so many times the budget")
      ->capture_default_str()
      ->check(CLI::Range(2, 16));
  add_budget(*command, flags->budget);
  command->add_option("--codec", flags->codec, "of the artifact: best, rans, brotli or lzma");
  command->add_flag("--as-published", flags->as_published, "pack the recipe's own setting, not the best model for the budget");
  command->add_option("--prompt", flags->prompts, "a beginning of a sample text (repeatable; default: \"The \")");
}

}  // namespace fairway::app
