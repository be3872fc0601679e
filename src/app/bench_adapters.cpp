// `fairway bench adapters`: how quickly lora-ttt goes through documents, by the length of its windows.
#include <fmt/core.h>

#include "app/command.h"
#include "app/kept_peak.h"
#include "base/json.h"
#include "bench/adapters_bench.h"
#include "ops/cuda/device.h"

namespace fairway::app {
namespace {

struct AdaptersBenchFlags {
  std::string recipe = "best";
  std::vector<std::string> overrides;
  int64_t documents = 64;
  double seconds = 2;
};

int run_adapters_bench(const CommonFlags& common, const AdaptersBenchFlags& flags) {
  Machine machine(common);
  const Recipe recipe = load_recipe(flags.recipe, flags.overrides);
  const bench::AdaptersBench b =
      bench::bench_adapters(recipe, flags.documents, flags.seconds, *machine.executor, machine.queue.pool());
  const bool in_bf16 = machine.executor->backend() == Backend::cuda;
  const Peaks peaks{in_bf16 ? cuda::peak_flops().bf16 : kept_peak_gflops(machine.queue.pool()) * 1e9,
                    peak_bytes_of(*machine.executor)};
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  std::string text = fmt::format("{} documents at once\n{:>8} {:>10} {:>8} {:>12}\n", b.documents, "window", "ms a chunk",
                                 "spread", "targets/s");
  for (const bench::AdaptersBench::Line& line : b.lines) {
    lines.push_back({{"window", line.window},
                     {"median_ms", line.chunk.median * 1e3},
                     {"spread", line.chunk.spread},
                     {"targets_per_second", line.targets_per_second}});
    text += fmt::format("{:8} {:10.2f} {:7.1f}% {:12.0f}\n", line.window, line.chunk.median * 1e3, 100 * line.chunk.spread,
                        line.targets_per_second);
  }
  text += "forward and backward of the longest, op by op:\n" + print_op_table(b.ops, b.lines.front().chunk.median, peaks);
  const auto ops = parse_json<nlohmann::ordered_json>(op_table_json(b.ops, peaks), "the table of ops");
  print_result(common, {{"recipe", flags.recipe}, {"documents", b.documents}, {"windows", lines}, {"ops", ops}}, text);
  return 0;
}

}  // namespace

void add_adapters_bench(CLI::App& bench) {
  auto flags = std::make_shared<AdaptersBenchFlags>();
  CLI::App* command = add_command(bench, "adapters", "chunks of documents at once, as lora-ttt scores and learns them",
                                  [flags](const CommonFlags& common) { return run_adapters_bench(common, *flags); });
  command->add_option("--recipe", flags->recipe, "a built-in recipe or a TOML file")->capture_default_str();
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_option("--documents", flags->documents, "documents at once")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  command->add_option("--seconds", flags->seconds, "time for each window")
      ->capture_default_str()
      ->check(number_between(0, 1e6));
}

}  // namespace fairway::app
