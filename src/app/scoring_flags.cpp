#include "app/scoring_flags.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fairway::app {

ScoringMode parse_mode(const std::string& name) {
  if (const auto mode = scoring_mode(name)) return *mode;
  throw InputError(fmt::format("--mode {}: expected one of {}", name, fmt::join(scoring_modes(), ", ")));
}

void add_scoring_flags(CLI::App& command, const std::shared_ptr<ScoreRequest>& request, bool required) {
  command.add_option("FILE", request->from, "a run folder, an artifact, or a .safetensors file with --recipe")
      ->required(required);
  command.add_option("--data", request->data,
                     "folder with validation shards and tokenizer.model (default: where the run had them)");
  command.add_option(
      "--tokenizer", request->tokenizer,
      "SentencePiece model of the shards or of the text (default: as the run had it, tokenizer.model in --data)");
  command.add_option("--recipe", request->recipe, "recipe of a weight file that has no run folder");
  command.add_option("--set", request->overrides, "key=value, changes a key of the recipe (score.ttt.lr=0.01)");
  command.add_option_function<std::string>(
      "--mode", [request](const std::string& name) { request->mode = parse_mode(name); },
      "plain, sliding, slot, ttt or lora-ttt, each also with +tilt (ngram: sliding+tilt), ttt and lora-ttt also with +slot "
      "or +slot+tilt; slot-published and ngram-published break the rules (default: the recipe's)");
  command.add_option("--stride", request->stride, "targets per window (default: the recipe's)")->check(CLI::Range(1, 1 << 20));
  command.add_option("--context", request->context, "window length (default: the recipe's)")->check(CLI::Range(1, 1 << 20));
  command.add_option("--tokens", request->tokens, "score only this many tokens, from the start")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command.add_flag("--documents", request->documents, "attention stays inside documents");
  command.add_flag("--all-targets", request->all_targets, "score the last partial window too");
}

namespace {

// Bits per byte that the tilt adds to what the same run would have scored without it.
double gain_of_tilt(const ScoredRun& run) {
  Score without = run.score;
  without.nats -= run.ledger.tilt_nats();
  return run.score.bits_per_byte() - without.bits_per_byte();
}

}  // namespace

nlohmann::ordered_json score_json(const Scoring& scoring, const ScoreSettings& settings, const ScoredRun& run) {
  const Score& score = run.score;
  nlohmann::ordered_json out{{"mode", name_of(settings.score.mode)},
                             {"modes", words_of(settings.score.mode)},
                             {"val_loss", score.loss()},
                             {"val_bpb", score.bits_per_byte()},
                             {"tokens", score.tokens},
                             {"bytes", score.bytes},
                             {"seconds", score.seconds},
                             {"legal", is_legal(settings)},
                             {"packed", scoring.source.packed},
                             {"whole", scoring.whole},
                             {"text", scoring.text},
                             {"tokenizer", scoring.held_out.tokenizer.identity()},
                             {"context", settings.score.context},
                             {"documents", settings.score.documents}};
  if (settings.score.mode.base != ScoreMode::plain) out["stride"] = settings.score.stride;
  const auto add = [&](const char* name, const ScoreCost::Part& part) {
    if (part.tokens > 0) out[name] = {{"tokens", part.tokens}, {"seconds", part.seconds}};
  };
  if (settings.score.mode.tilt) out["gains"] = {{"tilt", gain_of_tilt(run)}};
  add("forward", run.cost.forward);
  add("learning", run.cost.learning);
  for (const ScoredRun::Mark& mark : run.marks)
    out["marks"].push_back({{"targets", mark.targets}, {"seconds", mark.seconds}, {"val_bpb", mark.bits_per_byte}});
  if (!scoring.held_out.notes.empty()) out["notes"] = scoring.held_out.notes;
  return out;
}

std::string score_text(const Scoring& scoring, const ScoreSettings& settings, const Score& score) {
  return fmt::format("{}{}: {:.4f} nats per token, {:.4f} bits per byte over {} tokens ({} bytes) in {:.1f} s{}{}\n",
                     name_of(settings.score.mode), settings.score.documents ? " inside documents" : "", score.loss(),
                     score.bits_per_byte(), score.tokens, score.bytes, score.seconds,
                     scoring.source.packed ? "" : "  (weights as trained, not an artifact)",
                     is_legal(settings) ? "" : "  (legal: false)");
}

}  // namespace fairway::app
