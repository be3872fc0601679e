// `fairway bench generate`: tokens a second and time to the first token, of an artifact or of a recipe's untrained weights.
#include <fmt/core.h>

#include "app/command.h"
#include "artifact/artifact.h"
#include "base/error.h"
#include "base/file.h"
#include "bench/generate_bench.h"
#include "model/initialize.h"
#include "quant/quantize_model.h"

namespace fairway::app {
namespace {

struct GenerateBenchFlags {
  std::string artifact, recipe = "pr1105";
  std::vector<std::string> overrides;
  bench::GenerateBenchOptions options;
};

// Weights as training begins, rounded to the recipe's grids: generation is as quick with them as with trained ones.
std::string untrained_artifact(const GenerateBenchFlags& flags, Queue& queue) {
  Recipe recipe = load_recipe(flags.recipe, flags.overrides);
  recipe.quant.rule = QuantRule::rtn;
  ParamStore weights(parameter_table(recipe), ParamStore::Gradients::none);
  initialize(weights, recipe.model, 1, queue.pool());
  QuantReport report;
  QuantizedModel model = quantize_model(weights, recipe, nullptr, queue, report);
  model.train_length = recipe.data.seq_len;
  model.segment = segment_of(recipe);
  return write_artifact(model);
}

int run_generate_bench(const CommonFlags& common, const GenerateBenchFlags& flags) {
  Machine machine(common);
  if (machine.executor->backend() != Backend::cpu)
    throw InputError("--backend " + common.backend + ": packed weights run on the CPU only");
  if (!flags.artifact.empty() && !is_artifact(flags.artifact))
    throw InputError(flags.artifact + ": not a Fairway artifact (.fwy)");
  const std::string bytes = flags.artifact.empty() ? untrained_artifact(flags, machine.queue) : read_file(flags.artifact);
  const bench::GenerateBench b = bench::bench_generate(bytes, flags.options, machine.queue);
  const int threads = machine.queue.pool().threads();
  const double light = b.gb_per_s / b.memory_gb_per_s;
  print_result(common,
               {{"tokens_per_second", b.tokens_per_second},
                {"slowest", b.slowest},
                {"fastest", b.fastest},
                {"median_ms", 1e3 / b.tokens_per_second},
                {"spread", (b.fastest - b.slowest) / b.tokens_per_second},
                {"first_token_ms", b.first_token_ms},
                {"read_ms", b.read_ms},
                {"weight_bytes", b.weight_bytes},
                {"gb_per_s", b.gb_per_s},
                {"memory_gb_per_s", b.memory_gb_per_s},
                {"speed_of_light", light},
                {"logit_error", b.error},
                {"threads", threads}},
               fmt::format("{} texts of {} tokens on {} threads: {:.0f} tokens/s (from {:.0f} to {:.0f}), {:.3f} ms a token\n"
                           "first token {:.1f} ms after the file was read: {:.1f} to decode the weights and lay them out\n"
                           "{:.1f} MB of weights a token: {:.1f} GB/s, {:.0f} % of the {:.1f} GB/s of a plain read\n"
                           "logits differ from the scorer's by {:.1e} of the largest\n",
                           flags.options.texts, flags.options.tokens, threads, b.tokens_per_second, b.slowest, b.fastest,
                           1e3 / b.tokens_per_second, b.first_token_ms, b.read_ms, static_cast<double>(b.weight_bytes) * 1e-6,
                           b.gb_per_s, 100 * light, b.memory_gb_per_s, b.error));
  return 0;
}

}  // namespace

void add_generate_bench(CLI::App& bench) {
  auto flags = std::make_shared<GenerateBenchFlags>();
  CLI::App* command = add_command(bench, "generate", "tokens per second from packed weights, and the time to the first token",
                                  [flags](const CommonFlags& common) { return run_generate_bench(common, *flags); });
  command->add_option("FILE", flags->artifact, "an artifact (default: untrained weights of the recipe)");
  command->add_option("--recipe", flags->recipe, "a built-in recipe or a TOML file")->capture_default_str();
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  command->add_option("--tokens", flags->options.tokens, "tokens per text")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--texts", flags->options.texts, "texts to generate")->capture_default_str()->check(CLI::Range(1, 10000));
}

}  // namespace fairway::app
