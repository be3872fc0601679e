// `fairway bench attention`: attention of a training step, over rows and over documents of several lengths.
#include <fmt/core.h>

#include "app/bench_against.h"
#include "app/bench_machine.h"
#include "app/command.h"
#include "app/machine_facts.h"
#include "bench/attention_bench.h"

namespace fairway::app {
namespace {

struct AttentionBenchFlags {
  std::string recipe = "demo";
  std::vector<std::string> overrides;
  int64_t tokens = 0;
  double seconds = 1;
  AgainstFlags against;
};

int run_attention_bench(const CommonFlags& common, const AttentionBenchFlags& flags) {
  const Recipe recipe = recipe_to_time(flags.recipe, flags.overrides, flags.tokens);
  const int64_t tokens = recipe.train.batch_tokens;
  BenchMachine on(common);
  const double peak = on.peak;
  const auto b = bench::bench_attention(recipe, flags.seconds, *on.machine.executor, *on.truth, on.machine.queue.pool());
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  std::string text = fmt::format("{}, {} tokens, one call\n{:<14} {:>10} {:<9} {:>9} {:>8} {:>9} {:>9} {:>8}\n", flags.recipe,
                                 tokens, "documents", "keys", "", "us", "spread", "TFLOP/s", "of light", "library");
  for (const auto& line : b.lines) {
    for (const bool backward : {false, true}) {
      const OpLine& all = backward ? line.all_backward : line.all_forward;
      const bench::Timing& one = backward ? line.backward : line.forward;
      const double rate = all.flops / static_cast<double>(all.calls) / one.median, library = all.library_seconds / all.seconds;
      lines.push_back({{"documents", line.documents},
                       {"keys", line.keys},
                       {"pass", backward ? "backward" : "forward"},
                       {"median_ms", one.median * 1e3},
                       {"spread", one.spread},
                       {"tflops", rate * 1e-12},
                       {"gb_per_s", all.bytes / all.seconds * 1e-9},
                       {"speed_of_light", rate / peak}});
      if (library > 0) lines.back()["library"] = library;
      text +=
          fmt::format("{:<14} {:>10.1f} {:<9} {:>9.1f} {:>7.1f}% {:>9.3g} {:>8.1f}% {:>8}\n", backward ? "" : line.documents,
                      line.keys, backward ? "backward" : "forward", one.median * 1e6, 100 * one.spread, rate * 1e-12,
                      100 * rate / peak, library > 0 ? fmt::format("{:.2f}x", library) : "-");
    }
  }
  nlohmann::ordered_json result{{"recipe", flags.recipe},    {"tokens", tokens},
                                {"backend", common.backend}, {"device", launch_facts(common, 1)["device"]},
                                {"checked", b.checked},      {"attention", lines}};
  const int status = hold_against(flags.against, result, text);
  print_result(common, result, text);
  return status;
}

}  // namespace

void add_attention_bench(CLI::App& bench) {
  auto flags = std::make_shared<AttentionBenchFlags>();
  CLI::App* command = add_command(bench, "attention", "attention over rows and over documents of several lengths",
                                  [flags](const CommonFlags& common) { return run_attention_bench(common, *flags); });
  command->add_option("--recipe", flags->recipe, "a built-in recipe or a TOML file")->capture_default_str();
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_option("--tokens", flags->tokens, "tokens of a batch (default: two sequences)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--seconds", flags->seconds, "time to spend on each mix of documents")
      ->capture_default_str()
      ->check(number_between(0, 1e6));
  add_against(*command, flags->against);
}

}  // namespace fairway::app
