#include "stages/scoring.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "stages/shared_score.h"
#include "tokenizer/text_identity.h"

namespace fairway {
ScoreSettings settings_of(const ScoreRequest& request, const Recipe& recipe) {
  ScoreSettings settings{.score = recipe.score};
  ScoreRecipe& score = settings.score;
  if (request.mode) score.mode = *request.mode;
  if (request.context > 0) score.context = request.context;
  if (request.stride > 0) score.stride = request.stride;
  if (request.documents) score.documents = true;
  if (score.mode.base != ScoreMode::plain && score.stride > score.context) {
    if (request.stride > 0)
      throw InputError(fmt::format("--stride {}: exceeds the context of {}", score.stride, score.context));
    score.stride = score.context;
  }
  return settings;
}

namespace {

constexpr int64_t kMarkedChunks = 10;

void add_scores(std::vector<ScoredRun::Mark>& marks, const ScoreLedger& ledger, const TargetBytes& bytes) {
  Score until;
  for (ScoredRun::Mark& mark : marks) {
    while (until.tokens < mark.targets) {
      until.nats += static_cast<double>(ledger.nll(++until.tokens));
      until.bytes += bytes.of(ledger.stream(), until.tokens);
    }
    mark.bits_per_byte = until.bits_per_byte();
  }
}

}  // namespace

ScoredModel Scoring::model() const {
  return {source.recipe,
          {.looped = source.weights.looped},
          [this](ParamStore& params) { params.set_values(source.weights.params->flat_values()); },
          held_out.bytes};
}

std::unique_ptr<Scoring> open_scoring(const ScoreRequest& request) {
  for (const std::string& change : request.overrides) {
    if (!change.starts_with("score."))
      throw InputError("--set " + change + ": only keys of [score] may be changed; the weights were made with the others");
  }
  WeightSource source = open_weights(request.from, request.recipe, request.overrides);
  const ScoreSettings settings = settings_of(request, source.recipe);
  const Identities claim = tokenizer_claim(source);
  std::optional<HeldOut> held_out = open_held_out(request.data, source.recipe, &claim, request.tokenizer);
  if (!held_out) throw InputError("--data " + request.data + ": no validation shards (fineweb_val_*.bin)");
  const auto all = static_cast<int64_t>(held_out->tokens.size());
  const int64_t count = request.tokens > 0 ? std::min(all, request.tokens + 1) : all;
  if (!request.all_targets) require_one_window(count, settings.score.context, request.data);
  const int64_t targets = request.all_targets ? count - 1 : challenge_targets(count, settings.score.context);
  if (targets < 1) throw InputError(fmt::format("{}: {} validation tokens; scoring needs at least two", request.data, count));
  std::vector<uint16_t> stream(held_out->tokens.begin(), held_out->tokens.begin() + targets + 1);
  std::string text = text_identity(held_out->tokens, held_out->tokenizer);
  return std::make_unique<Scoring>(
      Scoring{std::move(source), std::move(*held_out), settings, std::move(stream), count == all, std::move(text)});
}

ScoredRun score_stream(const Scoring& scoring, const ScoreSettings& settings, std::span<const uint16_t> stream,
                       Machine& machine, bool quiet, Communicator& comm) {
  const std::string mode(name_of(settings.score.mode));
  ProgressLine line(quiet);
  const double begun = seconds_now();
  ScoreLedger ledger = make_ledger(stream, settings);
  std::vector<ScoredRun::Mark> marks;
  const int64_t marked = settings.score.mode.base == ScoreMode::ttt ? kMarkedChunks * settings.score.ttt.chunk : INT64_MAX;
  const ScoreProgress progress = [&](int64_t done, int64_t total) {
    const double spent = seconds_now() - begun, rate = static_cast<double>(done) / spent;
    if (done / marked > (marks.empty() ? 0 : marks.back().targets / marked)) marks.push_back({done, spent, 0});
    if (!line.due()) return;
    line.show(fmt::format("{}: scored {}/{} tokens  {} tokens/s  {} left", mode, done, total, quantity_text(rate),
                          duration_text(static_cast<double>(total - done) / rate)));
  };
  const ScoreContext context{machine.executor.get(), &machine.queue.pool(), &workers_of(settings, comm)};
  const auto evaluator = make_evaluator(scoring.model(), settings, context);
  score_on_ranks(*evaluator, settings, ledger, progress, comm);
  const ScoreCost cost = cost_of_ranks(evaluator->cost(), comm);
  if (!comm.root()) return {std::move(ledger), {}, {}, {}, {}};
  BlockSums blocks = sum_blocks(ledger, scoring.held_out.target_bytes());
  Score score = measure(blocks, ledger.targets());
  score.seconds = seconds_now() - begun;
  add_scores(marks, ledger, scoring.held_out.target_bytes());
  return {std::move(ledger), std::move(blocks), score, cost, std::move(marks)};
}

}  // namespace fairway
