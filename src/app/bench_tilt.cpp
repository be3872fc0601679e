// `fairway bench tilt`: how quickly the hints of a whole stream are made.
#include <fmt/core.h>

#include "app/command.h"
#include "bench/tilt_bench.h"
#include "stages/held_out.h"

namespace fairway::app {
namespace {

struct TiltBenchFlags {
  std::string recipe = "record", data;
  std::vector<std::string> overrides;
  int64_t tokens = 8'000'000;
  double seconds = 3;
};

std::vector<uint16_t> validation_tokens(const std::string& folder, const Recipe& recipe) {
  std::optional<HeldOut> held_out = open_held_out(folder, recipe);
  if (!held_out || held_out->tokens.size() < 2) throw InputError("--data " + folder + ": has no validation tokens");
  return std::move(held_out->tokens);
}

int run_tilt_bench(const CommonFlags& common, const TiltBenchFlags& flags) {
  Machine machine(common);
  const Recipe recipe = load_recipe(flags.recipe, flags.overrides);
  const std::vector<uint16_t> stream =
      flags.data.empty() ? bench::repeating_text(flags.tokens, recipe.model.vocab) : validation_tokens(flags.data, recipe);
  const bench::TiltBench b = bench::bench_tilt(recipe.score.ngram, stream, flags.seconds, machine.queue.pool());
  const auto share = [&](int64_t count, int64_t of) {
    return of > 0 ? 100.0 * static_cast<double>(count) / static_cast<double>(of) : 0;
  };
  const std::string text = fmt::format(
      "{} tokens on {} threads, the first {} checked one by one: {:.1f} ms (spread {:.1f}%), {:.2f} M tokens/s\n"
      "{:.2f}% of the targets have a hint, {:.1f}% of those are right\n",
      b.tokens, b.threads, b.checked, b.pass.median * 1e3, 100 * b.pass.spread, b.tokens_per_second / 1e6,
      share(b.hinted, b.tokens), share(b.right, b.hinted));
  print_result(common,
               {{"tokens", b.tokens},
                {"checked", b.checked},
                {"threads", b.threads},
                {"median_ms", b.pass.median * 1e3},
                {"spread", b.pass.spread},
                {"tokens_per_second", b.tokens_per_second},
                {"hinted", b.hinted},
                {"right", b.right}},
               text);
  return 0;
}

}  // namespace

void add_tilt_bench(CLI::App& bench) {
  auto flags = std::make_shared<TiltBenchFlags>();
  CLI::App* command = add_command(bench, "tilt", "hints of a whole stream, checked one by one first",
                                  [flags](const CommonFlags& common) { return run_tilt_bench(common, *flags); });
  command->add_option("--recipe", flags->recipe, "a built-in recipe or a TOML file")->capture_default_str();
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_option("--data", flags->data, "folder whose validation shards are read (default: made-up text)");
  command->add_option("--tokens", flags->tokens, "tokens of made-up text")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 31));
  command->add_option("--seconds", flags->seconds, "time to spend")->capture_default_str()->check(number_between(0, 1e6));
}

}  // namespace fairway::app
