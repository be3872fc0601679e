// `fairway generate`: text from an artifact or a run's weights, as it is made; a prompt loop on a terminal; two models side by
// side from one prompt and seed.
#include <fmt/core.h>
#include <unistd.h>

#include "app/named_inputs.h"
#include "app/text_input.h"
#include "app/writer.h"
#include "base/identity.h"
#include "base/output.h"

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

struct GenerateFlags : TextRequest {
  TextModelFlags model;
  std::string other;
  bool prompted = false;  // --prompt was given
};

ordered_json written_json(const TextModel& model, const Written& written) {
  return {{"text", written.text},
          {"tokens", written.tokens.size()},
          {"tokens_per_second", written.rate},
          {"first_token_ms", written.first_token * 1e3},
          {"packed", model.packed()}};
}

int write_once(const CommonFlags& common, const GenerateFlags& flags, const TextModel& model) {
  const bool stream = !common.json;
  if (stream) print_out(flags.prompt);
  const Written written = write_text(model, flags, [&](const std::string& piece) {
    if (stream) print_out(piece);
    return true;
  });
  print_result(common, written_json(model, written), "\n");
  return 0;
}

int write_two(const CommonFlags& common, const GenerateFlags& flags, const TextModel& model, Machine& machine) {
  const TextModel other({.from = flags.other, .recipe = flags.model.recipe, .tokenizer = flags.model.tokenizer}, machine);
  require_same(tokenizer_identity(other.tokenizer().names(), flags.other),
               tokenizer_identity(model.tokenizer().names(), flags.model.from),
               "texts of different tokenizers have no tokens in common");
  const auto silent = [](const std::string&) { return true; };
  const Written a = write_text(model, flags, silent), b = write_text(other, flags, silent);
  const Likeness alike = likeness(a.tokens, b.tokens);
  ordered_json result = written_json(model, a);
  result["other"] = written_json(other, b);
  result["match"] = alike.positions;
  result["overlap"] = alike.unigrams;
  print_result(common, result,
               fmt::format("{}\n{}same token at {:.1f} % of positions, {:.1f} % of tokens in both\n", flags.prompt,
                           side_by_side(flags.model.from + "\n\n" + a.text, flags.other + "\n\n" + b.text,
                                        terminal_columns(STDOUT_FILENO, 100)),
                           100 * alike.positions, 100 * alike.unigrams));
  return 0;
}

int run_generate(const CommonFlags& common, GenerateFlags flags) {
  require_model(flags.model.from);
  if (!flags.other.empty()) require_model(flags.other);
  if (flags.prompted && flags.prompt == "-") flags.prompt = read_text_input("-", "--prompt");
  Machine machine(common);
  const TextModel model(flags.model, machine);
  if (!flags.other.empty()) return write_two(common, flags, model, machine);
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (!flags.prompted && terminal && !common.json && !common.quiet) return run_prompt_loop(model, flags);
  return write_once(common, flags, model);
}

}  // namespace

void add_generate(CLI::App& program) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* command = add_command(program, "generate", "text from an artifact or a run's weights",
                                  [flags](const CommonFlags& common) { return run_generate(common, *flags); });
  command->add_option("FILE", flags->model.from, "an artifact, a run folder, or a .safetensors file with --recipe")->required();
  command->add_option("--recipe", flags->model.recipe, "recipe of a weight file that has no run folder");
  command->add_option("--tokenizer", flags->model.tokenizer,
                      "SentencePiece model (default: the artifact's own, beside FILE, or of the run's data)");
  command->add_option("--compare", flags->other, "a second model, from the same prompt and seed, side by side");
  command
      ->add_option("--prompt", flags->prompt,
                   "text to continue, or - for standard input (default on a terminal: the lines you type)")
      ->each([flags](const std::string&) { flags->prompted = true; });
  command->add_option("--context", flags->context, "window length (default: the training length)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--tokens", flags->sample.tokens, "tokens to generate")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--temperature", flags->sample.temperature, "0: always the most likely token")
      ->capture_default_str()
      ->check(number_between(0, 100));
  command->add_option("--top-k", flags->sample.top_k, "draw from the k most likely tokens (0: all)")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24));
  command
      ->add_option("--top-p", flags->sample.top_p,
                   "draw from the most likely tokens that together have this probability (1: all)")
      ->capture_default_str()
      ->check(number_between(0, 1));
  command->add_option("--seed", flags->sample.seed, "seed of the random draws")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 53));
}

}  // namespace fairway::app
