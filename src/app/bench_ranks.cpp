// `fairway bench ranks`: training steps shared by 1, 2 and 4 ranks of this machine, held to the same weights, and the step that
// as many GPUs would take.
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>

#include "app/bench_machine.h"
#include "app/command.h"
#include "app/machine_facts.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/json.h"
#include "bench/ranks_bench.h"
#include "comm/start_ranks.h"
#include "ops/cuda/device.h"
#include "stages/ranks.h"

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

struct RanksBenchFlags {
  std::string recipe = "demo", gpu;
  std::vector<std::string> overrides;
  std::vector<int> counts{1, 2, 4};
  int64_t tokens = 0, world = 8;
  int steps = 8;
  int told_to = -1;  // the descriptor into which ranks that were started write what they measured
};

ordered_json json_of(const bench::SharedSteps& one) {
  return {{"ranks", one.ranks},
          {"median_ms", one.step.median * 1e3},
          {"spread", one.step.spread},
          {"passes_ms", one.passes.median * 1e3},
          {"bytes_sent", one.bytes_sent},
          {"update_sent", one.update_sent},
          {"loss", one.loss},
          {"weights", one.weights}};
}

bench::SharedSteps read_shared(const ordered_json& told) {
  bench::SharedSteps one{.ranks = told.at("ranks")};
  one.step.median = told.at("median_ms").get<double>() * 1e-3;
  one.step.spread = told.at("spread");
  one.passes.median = told.at("passes_ms").get<double>() * 1e-3;
  one.bytes_sent = told.at("bytes_sent");
  one.update_sent = told.at("update_sent");
  one.loss = told.at("loss");
  one.weights = told.at("weights");
  return one;
}

bench::SharedSteps measure_here(Compute compute, const Recipe& recipe, int steps) {
  Communicator& comm = meet_ranks(compute);
  Machine machine(compute);
  return bench::measure_shared_steps(recipe, steps, *machine.executor, comm, machine.queue.pool());
}

// Memory that the ranks inherit, since the root's standard output is the user's.
class Told {
 public:
  Told() : file_(memfd_create("measured", 0)) {
    if (file_ < 0) throw WorkError("no memory for what the ranks measure");
  }
  ~Told() { close(file_); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  int file() const { return file_; }
  std::string text() const {
    std::string text(static_cast<size_t>(lseek(file_, 0, SEEK_END)), '\0');
    if (pread(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      throw WorkError("what the ranks measured could not be read");
    return text;
  }

 private:
  int file_;
};

void tell(int file, const std::string& text) {
  if (write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw WorkError("what the ranks measured could not be written");
}

bench::SharedSteps measure_by(int ranks, const CommonFlags& common, const Recipe& recipe, int steps) {
  if (ranks == 1) return measure_here(common, recipe, steps);
  const Told told;
  std::vector<std::string> words = command_line();
  words.insert(words.end(), {"--told-to", std::to_string(told.file())});
  if (const int status = start_ranks(ranks, words); status != 0)
    throw WorkError(fmt::format("{} ranks ended with status {}", ranks, status));
  return read_shared(parse_json<ordered_json>(told.text(), "what the ranks measured"));
}

// The device's links, or those that --gpu names; nothing where neither is known.
std::optional<bench::Gpu> links_of(const CommonFlags& common, const std::string& named) {
  if (!named.empty()) return bench::find_gpu(named);
  const Backend backend = parse_backend(common.backend);
  if (backend == Backend::cpu || backend == Backend::ref || cuda::devices().empty()) return std::nullopt;
  const std::string known = bench::scaling_gpu_of(cuda::devices().front().name);
  return known.empty() ? std::nullopt : std::optional(bench::find_gpu(known));
}

void require_counts(const RanksBenchFlags& flags) {
  if (flags.world > kMostOwnRanks)
    throw InputError(fmt::format("--world {}: expected at most {} emulated ranks", flags.world, kMostOwnRanks));
  for (const int count : flags.counts) (void)emulated_share(flags.world, count);
}

int run_ranks_bench(const CommonFlags& common, const RanksBenchFlags& flags) {
  require_counts(flags);
  const Recipe one_rank = recipe_to_time(flags.recipe, flags.overrides, flags.tokens);
  const Recipe recipe = bench::shared_recipe(one_rank, flags.world, one_rank.train.micro_batch_tokens);
  if (flags.told_to >= 0) {
    if (find_launch().kind != Launch::Kind::own) throw InputError("--told-to: is for ranks that this program has started");
    const bench::SharedSteps mine = measure_here(common, recipe, flags.steps);
    if (!mine.weights.empty()) tell(flags.told_to, json_of(mine).dump());
    return 0;
  }
  const std::optional<bench::Gpu> links = links_of(common, flags.gpu);
  std::vector<bench::SharedSteps> measured;
  for (const int count : flags.counts) measured.push_back(measure_by(count, common, recipe, flags.steps));
  bench::require_same_weights(measured);

  ordered_json lines = ordered_json::array();
  const auto tokens = static_cast<double>(recipe.train.batch_tokens);
  std::string text = fmt::format(
      "{}: a step of {} emulated ranks, {} tokens, shared by ranks of this machine\n{:>5} {:>10} {:>8} {:>12} {:>9} {:>10}\n",
      flags.recipe, flags.world, recipe.train.batch_tokens, "ranks", "ms", "spread", "tokens/s", "MB sent", "passes ms");
  for (const bench::SharedSteps& one : measured) {
    lines.push_back(json_of(one));
    text += fmt::format("{:>5} {:>10.2f} {:>7.1f}% {:>12.0f} {:>9.2f} {:>10.2f}\n", one.ranks, one.step.median * 1e3,
                        100 * one.step.spread, tokens / one.step.median, static_cast<double>(one.bytes_sent) * 1e-6,
                        one.passes.median * 1e3);
  }
  text += fmt::format("all left the same weights after {} steps ({})\n", flags.steps, measured.front().weights.substr(0, 12));
  ordered_json result{{"recipe", flags.recipe}, {"tokens", recipe.train.batch_tokens},
                      {"world", flags.world},   {"backend", common.backend},
                      {"steps", flags.steps},   {"device", launch_facts(common, 1)["device"]},
                      {"shared", lines},        {"predicted", nullptr}};
  if (links) {
    const bench::StepModel model = bench::predict_step(recipe, *links, measured.front());
    result["predicted"] = {{"gpus", flags.world},
                           {"gpu", links->name},
                           {"step_ms", model.step_ms},
                           {"passes_ms", model.passes_ms},
                           {"optimizer_ms", model.optimizer_ms},
                           {"exposed_ms", model.exposed_ms},
                           {"tokens_per_second", tokens / model.step_ms * 1e3}};
    text += fmt::format(
        "predicted on {} x {}, one rank on each: {:.2f} ms a step (passes as measured {:.2f}, optimizer {:.2f}, waiting "
        "{:.2f}), "
        "{:.0f} tokens/s\n",
        flags.world, links->name, model.step_ms, model.passes_ms, model.optimizer_ms, model.exposed_ms,
        tokens / model.step_ms * 1e3);
  } else {
    text += "no prediction for several GPUs: the links of this device are not known (--gpu h100 or h200 takes theirs)\n";
  }
  print_result(common, result, text);
  return 0;
}

}  // namespace

void add_ranks_bench(CLI::App& bench) {
  auto flags = std::make_shared<RanksBenchFlags>();
  CLI::App* command =
      add_command(bench, "ranks", "a step shared by several ranks of this machine, and what more GPUs would take",
                  [flags](const CommonFlags& common) { return run_ranks_bench(common, *flags); });
  command->add_option("--recipe", flags->recipe, "a built-in recipe or a TOML file")->capture_default_str();
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_option("--tokens", flags->tokens, "tokens of one emulated rank (default: two sequences)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--world", flags->world, "emulated ranks of a step, and GPUs of the prediction")
      ->capture_default_str()
      ->check(CLI::Range(2, kMostOwnRanks));
  command->add_option("--counts", flags->counts, "how many ranks share the step")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::Range(1, kMostOwnRanks));
  command->add_option("--steps", flags->steps, "steps; the first two are not timed")
      ->capture_default_str()
      ->check(CLI::Range(3, 10000));
  command->add_option("--gpu", flags->gpu, "h100 or h200: whose links the prediction takes (default: this device's)");
  command->add_option("--told-to", flags->told_to)->group("");
}

}  // namespace fairway::app
