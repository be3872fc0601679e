// `fairway bench step | ops | loader`: timings, each with its result checked first.
#include <fmt/core.h>

#include "app/bench_against.h"
#include "app/bench_machine.h"
#include "app/command.h"
#include "app/machine_facts.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/json.h"
#include "bench/gemm_bench.h"
#include "bench/loader_bench.h"
#include "bench/step_bench.h"
#include "train/loader_settings.h"

namespace fairway::app {
namespace {

struct StepFlags {
  std::string recipe = "demo", data;
  std::vector<std::string> overrides;
  int64_t tokens = 0;
  double seconds = 6;
  bool looped = false;
  AgainstFlags against;
};

int bench_step(const CommonFlags& common, const StepFlags& flags) {
  const Recipe recipe = recipe_to_time(flags.recipe, flags.overrides, flags.tokens);
  BenchMachine on(common);
  Machine& machine = on.machine;
  const double peak = on.peak;
  std::optional<data::ShardSet> shards;
  std::optional<data::Loader> loader;
  bench::NextBatch next;
  if (!flags.data.empty()) {
    shards.emplace(data::ShardSet::open_train(flags.data));
    loader.emplace(*shards, sampler_options(recipe), loader_options(recipe));
    next = [&] {
      const data::Batch& batch = loader->next();
      return MicroBatch{batch.tokens, batch.targets, batch.segment_start};
    };
  }
  const bench::StepBench b = bench::bench_step(recipe, {.looped = flags.looped}, flags.seconds, *machine.executor, *on.truth,
                                               machine.queue.pool(), next);
  const Peaks peaks{peak, peak_bytes_of(*machine.executor)};
  const auto ops = parse_json<nlohmann::ordered_json>(op_table_json(b.ops, peaks), "the table of ops");
  const std::string table = print_op_table(b.ops, b.passes.median, peaks);
  const double rate = b.tokens / b.step.median, light = b.flops / b.step.median / peak;
  nlohmann::ordered_json result{{"recipe", flags.recipe},
                                {"tokens", b.tokens},
                                {"looped", flags.looped},
                                {"data", !flags.data.empty()},
                                {"backend", common.backend},
                                {"device", launch_facts(common, 1)["device"]},
                                {"median_ms", b.step.median * 1e3},
                                {"spread", b.step.spread},
                                {"passes_ms", b.passes.median * 1e3},
                                {"forward_ms", b.losses.median * 1e3},
                                {"forward_tokens_per_second", b.tokens / b.losses.median},
                                {"tokens_per_second", rate},
                                {"tflops", b.flops / b.step.median * 1e-12},
                                {"speed_of_light", light},
                                {"peak_gflops", peak * 1e-9},
                                {"checked", b.checked},
                                {"ops", ops}};
  std::string text = fmt::format(
      "{}: {:.0f} tokens in {:.2f} ms (spread {:.1f}%), {:.0f} tokens/s, {:.1f}% of speed of light ({:.0f} GFLOP/s)\n"
      "forward and backward {:.2f} ms, clip, update and averages {:.2f} ms; losses alone {:.2f} ms, {:.0f} tokens/s\n{}",
      flags.recipe, b.tokens, b.step.median * 1e3, 100 * b.step.spread, rate, 100 * light, peak * 1e-9, b.passes.median * 1e3,
      (b.step.median - b.passes.median) * 1e3, b.losses.median * 1e3, b.tokens / b.losses.median, table);
  const int status = hold_against(flags.against, result, text);
  print_result(common, result, text);
  return status;
}

struct OpsFlags {
  double seconds = 0.5;
  AgainstFlags against;
};

int bench_ops(const CommonFlags& common, const OpsFlags& flags) {
  const Backend backend = parse_backend(common.backend);
  if (backend == Backend::ref) throw InputError("--backend ref: the reference has no products to time; use cpu or cuda");
  std::vector<bench::GemmLine> products;
  if (backend == Backend::cpu) {
    Machine machine(common);
    products = bench::bench_gemm(machine.queue.pool(), flags.seconds);
  } else {
    products = bench::bench_device_gemm(backend == Backend::cuda, flags.seconds);
  }
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  std::string text = fmt::format("{:4} {:>6} {:>6} {:>6} {:>10} {:>9} {:>16} {:>6} {:>9}\n", "gemm", "M", "N", "K", "us",
                                 "GFLOP/s", "% speed of light", "best", "error");
  for (const bench::GemmLine& l : products) {
    lines.push_back({{"layout", l.layout},
                     {"m", l.m},
                     {"n", l.n},
                     {"k", l.k},
                     {"median_ms", l.timing.median * 1e3},
                     {"spread", l.timing.spread},
                     {"tflops", l.gflops * 1e-3},
                     {"speed_of_light", l.share},
                     {"speed_of_light_best", l.best_share},
                     {"peak_gflops", l.peak},
                     {"error", l.error}});
    text += fmt::format("{:4} {:6} {:6} {:6} {:10.1f} {:9.1f} {:15.1f}% {:5.1f}% {:9.1e}\n", l.layout, l.m, l.n, l.k,
                        l.timing.median * 1e6, l.gflops, 100 * l.share, 100 * l.best_share, l.error);
  }
  nlohmann::ordered_json result{{"backend", common.backend}, {"device", launch_facts(common, 1)["device"]}, {"gemm", lines}};
  const int status = hold_against(flags.against, result, text);
  print_result(common, result, text);
  return status;
}

struct LoaderFlags {
  std::string data, sampler = "coprime";
  bench::LoaderBenchOptions options;
};

int bench_loader(const CommonFlags& common, LoaderFlags flags) {
  flags.options.sampling.kind = data::sampler_kind(flags.sampler);
  const bench::LoaderBenchResult r = bench::bench_loader(flags.data, flags.options);
  print_result(
      common,
      {{"tokens_per_second", r.tokens_per_second},
       {"first_batch_ms", r.first_batch_seconds * 1e3},
       {"open_ms", r.open_seconds * 1e3},
       {"waited_share", r.waited_share},
       {"gb_per_s", r.tokens_per_second * 2e-9},
       {"buffer_bytes", r.buffer_bytes},
       {"anonymous_bytes", r.anonymous_bytes},
       {"tokens", r.tokens}},
      fmt::format("{}: {:.0f} M tokens/s, first batch after {:.1f} ms, {:.1f} MiB beyond the mapped files\n", flags.sampler,
                  r.tokens_per_second * 1e-6, r.first_batch_seconds * 1e3, static_cast<double>(r.anonymous_bytes) / (1 << 20)));
  return 0;
}

void add_loader(CLI::App& bench) {
  auto flags = std::make_shared<LoaderFlags>();
  CLI::App* command = add_command(bench, "loader", "the data loader alone, on a folder of shards",
                                  [flags](const CommonFlags& common) { return bench_loader(common, *flags); });
  command->add_option("--data", flags->data, "folder of shards")->required();
  command->add_option("--sampler", flags->sampler, "sequential, coprime, shuffled or docpack")->capture_default_str();
  command->add_option("--seq-len", flags->options.sampling.length, "tokens per row")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--rows", flags->options.sampling.rows, "rows per emulated rank")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--seconds", flags->options.seconds, "time to measure")
      ->capture_default_str()
      ->check(number_between(0.01, 600));
}

}  // namespace

void add_bench(CLI::App& program) {
  CLI::App* bench = program.add_subcommand("bench", "timings with the result checked first");
  bench->require_subcommand(1);
  auto flags = std::make_shared<StepFlags>();
  CLI::App* step = add_command(*bench, "step", "a whole training step, split by op",
                               [flags](const CommonFlags& common) { return bench_step(common, *flags); });
  step->add_option("--recipe", flags->recipe, "a built-in recipe or a TOML file")->capture_default_str();
  step->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  step->add_option("--data", flags->data, "folder of shards whose text the steps read (default: random tokens)");
  step->add_option("--tokens", flags->tokens, "tokens per step (default: two sequences)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  step->add_option("--seconds", flags->seconds, "time to spend")->capture_default_str()->check(number_between(0.1, 600));
  step->add_flag("--looped", flags->looped, "with depth recurrence");
  add_against(*step, flags->against);
  auto of_ops = std::make_shared<OpsFlags>();
  CLI::App* ops = add_command(*bench, "ops", "matrix products, compared with the machine's peak",
                              [of_ops](const CommonFlags& common) { return bench_ops(common, *of_ops); });
  ops->add_option("--seconds", of_ops->seconds, "time for each shape")->capture_default_str()->check(number_between(0.01, 60));
  add_against(*ops, of_ops->against);
  add_loader(*bench);
  add_pack_bench(*bench);
  add_quantize_bench(*bench);
  add_generate_bench(*bench);
  add_adapters_bench(*bench);
  add_tilt_bench(*bench);
  add_attention_bench(*bench);
  add_scaling_bench(*bench);
  add_ranks_bench(*bench);
}

}  // namespace fairway::app
