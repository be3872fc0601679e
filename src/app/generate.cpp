// `fairway generate`: text from a run's weights.
#include <fmt/core.h>

#include "app/command.h"
#include "app/weights.h"
#include "base/error.h"
#include "generate/sample.h"
#include "score/eval_model.h"
#include "tokenizer/tokenizer.h"
#include "train/loop.h"

namespace fairway::app {
namespace {

struct GenerateFlags {
  std::string from, recipe, tokenizer, prompt;
  int64_t context = 0;
  SampleOptions sample;
};

// A run keeps its shards and their tokenizer in data/; an artifact usually lies in its run's folder.
std::filesystem::path tokenizer_beside(const std::filesystem::path& from) {
  const std::filesystem::path folder = std::filesystem::is_directory(from) ? from : from.parent_path();
  const std::filesystem::path alone = folder / "tokenizer.model";
  return std::filesystem::exists(alone) ? alone : folder / "data" / "tokenizer.model";
}

int run_generate(const CommonFlags& common, const GenerateFlags& flags) {
  const double begun = steady_seconds();
  const WeightSource source = open_weights(flags.from, flags.recipe, {});
  const std::filesystem::path tokenizer_path =
      flags.tokenizer.empty() ? tokenizer_beside(flags.from) : std::filesystem::path(flags.tokenizer);
  if (!std::filesystem::exists(tokenizer_path))
    throw InputError(tokenizer_path.string() + ": no such file; name the tokenizer with --tokenizer");
  const Tokenizer tokenizer = Tokenizer::load(tokenizer_path);
  if (tokenizer.vocab() > source.recipe.model.vocab) {
    throw InputError(fmt::format("{}: {} pieces, the model has {} tokens", tokenizer_path.string(), tokenizer.vocab(),
                                 source.recipe.model.vocab));
  }
  Machine machine(common);
  std::vector<int32_t> prompt{kBosId};
  for (int id : tokenizer.encode(flags.prompt)) prompt.push_back(id);
  const int64_t window = flags.context > 0 ? flags.context : source.recipe.data.seq_len;
  const ParamStore params(parameter_table(source.recipe), ParamStore::Gradients::none);
  load_weights(params, source.weights);
  Decoder model(source.recipe, params, 1, std::min(window, static_cast<int64_t>(prompt.size()) + flags.sample.tokens),
                {.looped = stored_looped(source.weights, source.recipe)}, *machine.executor);
  SampleOptions options = flags.sample;
  options.stop = kBosId;  // the next document
  double first = 0;
  std::vector<int> ids;
  const double started = steady_seconds();
  sample(model, prompt, options, [&](int32_t token) {
    if (ids.empty()) first = steady_seconds() - begun;
    ids.push_back(std::min(token, tokenizer.vocab() - 1));
  });
  const std::string text = tokenizer.decode(ids);
  const double rate = static_cast<double>(ids.size()) / std::max(steady_seconds() - started, 1e-9);
  print_result(common, {{"text", text}, {"tokens", ids.size()}, {"tokens_per_second", rate}, {"first_token_ms", first * 1e3}},
               flags.prompt + text + "\n");
  return 0;
}

}  // namespace

void add_generate(CLI::App& program) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = add_command(program, "generate", "text from a run's weights",
                                  [flags](const CommonFlags& common) { return run_generate(common, *flags); });
  command->add_option("FILE", flags->from, "a run folder, an artifact, or a .safetensors file with --recipe")->required();
  command->add_option("--recipe", flags->recipe, "the recipe of a lone weight file");
  command->add_option("--tokenizer", flags->tokenizer, "SentencePiece model (default: RUN/data/tokenizer.model)");
  command->add_option("--prompt", flags->prompt, "text to continue");
  command->add_option("--context", flags->context, "window length (default: the training length)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--tokens", flags->sample.tokens, "tokens to make")->capture_default_str()->check(CLI::Range(1, 1 << 24));
  command->add_option("--temperature", flags->sample.temperature, "0: always the likeliest")
      ->capture_default_str()
      ->check(number_between(0, 100));
  command->add_option("--top-k", flags->sample.top_k, "draw from the k likeliest (0: all)")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24));
  command->add_option("--seed", flags->sample.seed, "seed of the draws")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
}

}  // namespace fairway::app
