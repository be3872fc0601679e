#include "app/scoring.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/shared_score.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "tokenizer/text_identity.h"

namespace fairway::app {
namespace {

ScoreMode parse_mode(const std::string& name) {
  const auto& names = EnumNames<ScoreMode>::names;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<ScoreMode>(found - names.begin());
  std::string all;
  for (const std::string_view mode : names) all += (all.empty() ? "" : ", ") + std::string(mode);
  throw InputError("--mode " + name + ": expected one of " + all);
}

ScoreSettings settings_of(const ScoringFlags& flags, const Recipe& recipe) {
  ScoreSettings settings{.score = recipe.score};
  ScoreRecipe& score = settings.score;
  if (!flags.mode.empty()) score.mode = parse_mode(flags.mode);
  if (flags.context > 0) score.context = flags.context;
  if (flags.stride > 0) score.stride = flags.stride;
  if (flags.documents) score.documents = true;
  if (score.mode != ScoreMode::plain && score.stride > score.context) {
    if (flags.stride > 0) throw InputError(fmt::format("--stride {}: exceeds the context of {}", score.stride, score.context));
    score.stride = score.context;
  }
  return settings;
}

}  // namespace

void add_scoring_flags(CLI::App& command, const std::shared_ptr<ScoringFlags>& flags, bool required) {
  command.add_option("FILE", flags->from, "a run folder, an artifact, or a .safetensors file with --recipe")
      ->required(required);
  command.add_option("--data", flags->data, "folder with validation shards and tokenizer.model")->required(required);
  command.add_option("--recipe", flags->recipe, "the recipe of a lone weight file");
  command.add_option("--set", flags->overrides, "key=value, changes a key of the recipe (score.ttt.lr=0.01)");
  command.add_option("--mode", flags->mode,
                     "plain, sliding, slot, ttt, lora-ttt, ngram; slot-published and ngram-published break the rules "
                     "(default: the recipe's)");
  command.add_option("--stride", flags->stride, "targets of a window (default: the recipe's)")->check(CLI::Range(1, 1 << 20));
  command.add_option("--context", flags->context, "window length (default: the recipe's)")->check(CLI::Range(1, 1 << 20));
  command.add_option("--tokens", flags->tokens, "only the first so many")->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command.add_flag("--documents", flags->documents, "attention stays inside documents");
  command.add_flag("--all-targets", flags->all_targets, "score the last partial window too");
}

ScoredModel Scoring::model() const {
  return {source.recipe,
          {.looped = stored_looped(source.weights, source.recipe)},
          [this](ParamStore& params) { load_weights(params, source.weights); },
          held_out.bytes};
}

std::unique_ptr<Scoring> open_scoring(const ScoringFlags& flags) {
  if (!flags.mode.empty()) parse_mode(flags.mode);  // refused before anything is read
  for (const std::string& change : flags.overrides) {
    if (!change.starts_with("score."))
      throw InputError("--set " + change + ": only keys of [score] may be changed; the others made the weights");
  }
  WeightSource source = open_weights(flags.from, flags.recipe, flags.overrides);
  const ScoreSettings settings = settings_of(flags, source.recipe);
  const TokenizerClaim claim = tokenizer_claim(source.weights);
  std::optional<HeldOut> held_out = open_held_out(flags.data, source.recipe, &claim);
  if (!held_out) throw InputError("--data " + flags.data + ": no validation shards (fineweb_val_*.bin)");
  const auto all = static_cast<int64_t>(held_out->tokens.size());
  const int64_t count = flags.tokens > 0 ? std::min(all, flags.tokens + 1) : all;
  if (!flags.all_targets) require_one_window(count, settings.score.context, flags.data);
  const int64_t targets = flags.all_targets ? count - 1 : challenge_targets(count, settings.score.context);
  if (targets < 1) throw InputError(fmt::format("{}: {} validation tokens, fewer than a target needs", flags.data, count));
  std::vector<uint16_t> stream(held_out->tokens.begin(), held_out->tokens.begin() + targets + 1);
  std::string text = text_identity(held_out->tokens, held_out->tokenizer);
  return std::make_unique<Scoring>(
      Scoring{std::move(source), std::move(*held_out), settings, std::move(stream), count == all, std::move(text)});
}

ScoredRun score_stream(const Scoring& scoring, const ScoreSettings& settings, std::span<const uint16_t> stream,
                       Machine& machine, bool quiet, Communicator& comm) {
  const std::string mode(name_of(settings.score.mode));
  ProgressLine line(quiet);
  const double begun = steady_seconds();
  ScoreLedger ledger = make_ledger(stream, settings);
  const ScoreProgress progress = [&](int64_t done, int64_t total) {
    if (!line.due()) return;
    const double spent = steady_seconds() - begun, rate = static_cast<double>(done) / spent;
    line.show(fmt::format("{}: scored {}/{} tokens  {} tokens/s  {} left", mode, done, total, quantity_text(rate),
                          duration_text(static_cast<double>(total - done) / rate)));
  };
  const ScoreContext context{machine.executor.get(), &machine.queue.pool(), &workers_of(settings, comm)};
  const auto evaluator = make_evaluator(scoring.model(), settings, context);
  score_on_ranks(*evaluator, settings, ledger, progress, comm);
  const ScoreCost cost = cost_of_ranks(evaluator->cost(), comm);
  if (!comm.root()) return {std::move(ledger), {}, {}, {}};
  BlockSums blocks = sum_blocks(ledger, scoring.held_out.target_bytes());
  Score score = measure(blocks, ledger.targets());
  score.seconds = steady_seconds() - begun;
  return {std::move(ledger), std::move(blocks), score, cost};
}

nlohmann::ordered_json score_json(const Scoring& scoring, const ScoreSettings& settings, const ScoredRun& run) {
  const Score& score = run.score;
  nlohmann::ordered_json out{{"mode", name_of(settings.score.mode)},
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
  if (settings.score.mode != ScoreMode::plain) out["stride"] = settings.score.stride;
  const auto add = [&](const char* name, const ScoreCost::Part& part) {
    if (part.tokens > 0) out[name] = {{"tokens", part.tokens}, {"seconds", part.seconds}};
  };
  add("forward", run.cost.forward);
  add("learning", run.cost.learning);
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
