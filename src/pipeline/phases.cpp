#include "pipeline/phases.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.h"
#include "recipe/recipe_json.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// key=value for each key below `prefix` that is not at its default; an artifact does not hold the recipe's way of scoring.
void add_changes(const std::string& prefix, const ordered_json& have, const ordered_json& usual,
                 std::vector<std::string>& out) {
  for (const auto& [key, value] : have.items()) {
    if (value == usual[key]) continue;
    if (value.is_object())
      add_changes(prefix + key + ".", value, usual[key], out);
    else
      out.push_back(prefix + key + "=" + value.dump());
  }
}

ScoreRequest as_the_recipe_says(const ChainRequest& request, const Recipe& recipe) {
  ScoreRequest score{.from = (fs::path(request.out) / "model.fwy").string(), .data = request.data};
  score.mode = recipe.score.mode;
  score.context = recipe.score.context;
  if (recipe.score.mode != ScoreMode::plain) score.stride = std::min(recipe.score.stride, recipe.score.context);
  Recipe rest = recipe;  // what has no field of its own
  rest.score.mode = ScoreRecipe{}.mode;
  rest.score.context = ScoreRecipe{}.context;
  rest.score.stride = ScoreRecipe{}.stride;
  Recipe usual;
  usual.score.documents = packs_documents(recipe);  // an artifact says how it was trained
  add_changes("score.", to_json_value(rest)["score"], to_json_value(usual)["score"], score.overrides);
  return score;
}

ScoreRequest plainly(const ChainRequest& request, const Recipe& recipe) {
  ScoreRequest score{.from = (fs::path(request.out) / "model.fwy").string(), .data = request.data, .mode = ScoreMode::plain};
  if (recipe.score.documents != packs_documents(recipe))
    score.overrides.push_back(fmt::format("score.documents={}", recipe.score.documents));
  return score;
}

ordered_json fields(const ScoreRequest& score) {
  return {{"data", score.data},
          {"mode", name_of(*score.mode)},
          {"context", score.context},
          {"stride", score.stride},
          {"set", score.overrides}};
}

Phase train_phase(const ChainRequest& request, const Recipe& recipe, const Stages& stages) {
  Phase phase{.name = "train", .request = {{"recipe", recipe_hash(recipe)}, {"data", request.data}}};
  phase.run = [&stages, asked = TrainRequest{.recipe = recipe, .data = request.data, .out = request.out, .resume = true}] {
    TrainRequest now = asked;
    now.started = seconds_now();
    return stages.train(now);
  };
  phase.identity = request.tokenizer;
  phase.outputs = {"averaged.safetensors"};
  phase.present = {"recipe.toml", "metrics.jsonl", "timing.jsonl", "train.log"};
  phase.shared = true;
  if (schedule_clock(recipe) == ScheduleClock::time) phase.expected_seconds = recipe.train.seconds;
  return phase;
}

Phase pack_phase(const ChainRequest& request, const Stages& stages) {
  PackRequest pack = request.packing;
  pack.from = request.out;
  pack.data = request.data;
  return {.name = "pack",
          .run = [&stages, pack] { return stages.pack(pack); },
          .request = {{"data", pack.data}, {"budget", pack.budget}, {"codec", pack.codec}, {"as_published", pack.as_published}},
          .identity = request.program + request.tokenizer,  // the code's bytes are part of its budget
          .inputs = {"averaged.safetensors", "recipe.toml"},
          .outputs = {"model.fwy", "pack.json"},
          .shared = true};
}

Phase plain_phase(const ChainRequest& request, const Recipe& recipe, const Stages& stages) {
  const ScoreRequest score = plainly(request, recipe);
  return {.name = "score plain",
          .run = [&stages, score] { return stages.score(score, ""); },
          .request = fields(score),
          .identity = request.program + request.tokenizer + request.held_out,
          .inputs = {"model.fwy"},
          .outputs = {"score_plain.json"},
          .save_as = "score_plain.json",
          .shared = true};
}

Phase score_phase(const ChainRequest& request, const Recipe& recipe, const Stages& stages) {
  const ScoreRequest score = as_the_recipe_says(request, recipe);
  return {.name = "score",
          .run = [&stages, score, keep = request.out] { return stages.score(score, keep); },
          .request = fields(score),
          .identity = request.program + request.tokenizer + request.held_out,
          .inputs = {"model.fwy"},
          .outputs = {"score.json"},
          .present = {"receipt.json", "score.records"},
          .shared = true};
}

Phase audit_phase(const ChainRequest& request, const Recipe& recipe, const Stages& stages) {
  const AuditRequest audit{as_the_recipe_says(request, recipe), (fs::path(request.out) / "receipt.json").string()};
  return {.name = "audit",
          .run = [&stages, audit] { return stages.audit(audit); },
          .request = fields(audit.score),
          .identity = request.program + request.tokenizer + request.held_out,
          .inputs = {"model.fwy", "score.json"},
          .outputs = {"receipt.json", "audit.json"},
          .save_as = "audit.json"};
}

Phase samples_phase(const ChainRequest& request, const Stages& stages) {
  const SamplesRequest samples{.model = (fs::path(request.out) / "model.fwy").string(),
                               .tokenizer = (fs::path(request.data) / "tokenizer.model").string(),
                               .prompts = request.prompts};
  return {.name = "samples",
          .run = [&stages, samples] { return stages.samples(samples); },
          .request = {{"prompts", samples.prompts},
                      {"tokens", samples.tokens},
                      {"temperature", samples.temperature},
                      {"seed", samples.seed}},
          .identity = request.tokenizer,
          .inputs = {"model.fwy"},
          .outputs = {"samples.json"},
          .save_as = "samples.json",
          .keep_result = false};
}

Phase report_phase(const ChainRequest& request, const Stages& stages) {
  return {
      .name = "report",
      .run = [&stages, folder = request.out] { return stages.report(folder); },
      .inputs = {"metrics.jsonl", "pack.json", "score.json", "score_plain.json", "audit.json", "samples.json", "machine.json"},
      .outputs = {"report.html"}};
}

}  // namespace

std::vector<Phase> plan_phases(const ChainRequest& request, const Recipe& recipe, const Stages& stages) {
  std::vector<Phase> phases{train_phase(request, recipe, stages)};
  if (!request.training_only) {
    phases.push_back(pack_phase(request, stages));
    if (recipe.score.mode != ScoreMode::plain) phases.push_back(plain_phase(request, recipe, stages));
    phases.push_back(score_phase(request, recipe, stages));
    phases.push_back(audit_phase(request, recipe, stages));
    phases.push_back(samples_phase(request, stages));
    phases.push_back(report_phase(request, stages));
  }
  for (Phase& phase : phases) {
    const auto known = request.expected.find(phase.name);
    if (known != request.expected.end()) phase.expected_seconds = known->second;
  }
  return phases;
}

}  // namespace fairway::pipeline
