// `fairway score`: bits per byte of a run's weights.
#include <fmt/core.h>

#include "app/command.h"
#include "app/validation.h"
#include "app/weights.h"
#include "base/error.h"
#include "base/progress_line.h"

namespace fairway::app {
namespace {

struct ScoreFlags {
  std::string from, data, recipe, mode = "plain";
  int64_t context = 0, tokens = 0;
};

int run_score(const CommonFlags& common, const ScoreFlags& flags) {
  if (flags.mode != "plain") throw InputError("--mode " + flags.mode + ": this program scores plain only");
  const WeightSource source = open_weights(flags.from, flags.recipe, {});
  std::optional<HeldOut> held_out = open_held_out(flags.data, source.recipe);
  if (!held_out) throw InputError("--data " + flags.data + ": no validation shards (fineweb_val_*.bin)");
  if (flags.tokens > 0) held_out->tokens.resize(std::min(held_out->tokens.size(), static_cast<size_t>(flags.tokens) + 1));
  Machine machine(common);
  const int64_t length = flags.context > 0 ? flags.context : source.recipe.data.seq_len;
  require_one_window(*held_out, length, flags.data);
  EvalModel model(source.recipe, std::max<int64_t>(1, 4096 / length), length,
                  {.looped = stored_looped(source.weights, source.recipe)}, *machine.executor);
  model.load(source.weights);
  ProgressLine line(common.quiet);
  const double begun = steady_seconds();
  const Score score =
      score_plain(model, held_out->tokens, held_out->bytes, source.recipe.model.vocab, [&](int64_t done, int64_t total) {
        if (!line.due()) return;
        const double spent = steady_seconds() - begun, rate = static_cast<double>(done) / spent;
        line.show(fmt::format("scored {}/{} tokens  {} tokens/s  {} left", done, total, quantity_text(rate),
                              duration_text(static_cast<double>(total - done) / rate)));
      });
  print_result(common,
               {{"mode", "plain"},
                {"val_loss", score.loss()},
                {"val_bpb", score.bits_per_byte()},
                {"tokens", score.tokens},
                {"bytes", score.bytes},
                {"seconds", score.seconds},
                {"legal", true}},
               fmt::format("plain: {:.4f} nats per token, {:.4f} bits per byte over {} tokens ({} bytes) in {:.1f} s\n",
                           score.loss(), score.bits_per_byte(), score.tokens, score.bytes, score.seconds));
  return 0;
}

}  // namespace

void add_score(CLI::App& program) {
  auto flags = std::make_shared<ScoreFlags>();
  CLI::App* command = add_command(program, "score", "bits per byte of a run or of weights on the validation shards",
                                  [flags](const CommonFlags& common) { return run_score(common, *flags); });
  command->add_option("FILE", flags->from, "a run folder, or a .safetensors file with --recipe")->required();
  command->add_option("--data", flags->data, "folder with validation shards and tokenizer.model")->required();
  command->add_option("--recipe", flags->recipe, "the recipe of a lone weight file");
  command->add_option("--mode", flags->mode, "plain")->capture_default_str();
  command->add_option("--context", flags->context, "window length (default: the training length)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--tokens", flags->tokens, "score only the first so many")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
}

}  // namespace fairway::app
