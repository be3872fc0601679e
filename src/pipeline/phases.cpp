#include "pipeline/phases.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "report/challenge_log.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Plain and sliding windows, beside the recipe's own mode.
ScoreRequest by_windows(const ChainRequest& request, const Recipe& recipe, const ScoringMode& mode) {
  ScoreRequest score{.from = (fs::path(request.out) / "model.fwy").string(), .data = request.data, .mode = mode};
  score.tokenizer = request.tokenizer_file;
  if (mode.base == ScoreMode::sliding) {
    score.context = recipe.score.context;
    score.stride = std::min(recipe.score.stride, recipe.score.context);
  }
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
  phase.run = [&stages, asked = TrainRequest{.recipe = recipe,
                                             .data = request.data,
                                             .out = request.out,
                                             .resume = true,
                                             .allow_shared = request.allow_shared,
                                             .tokenizer = request.tokenizer_file,
                                             .from = request.from,
                                             .memory = request.memory}] {
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
  pack.tokenizer = request.tokenizer_file;
  ordered_json asked{{"data", pack.data}, {"budget", pack.budget}, {"codec", pack.codec}, {"as_published", pack.as_published}};
  if (pack.with_tokenizer) asked["with_tokenizer"] = true;
  return {.name = "pack",
          .run = [&stages, pack] { return stages.pack(pack); },
          .request = asked,
          .identity = request.program + request.tokenizer,  // the code's bytes are part of its budget
          .inputs = {"averaged.safetensors", "recipe.toml"},
          .outputs = {"model.fwy", "pack.json"},
          .shared = true};
}

Phase windows_phase(const ChainRequest& request, const Recipe& recipe, const Stages& stages, const ScoringMode& mode) {
  const ScoreRequest score = by_windows(request, recipe, mode);
  const std::string name(name_of(mode)), file = "score_" + name + ".json";
  return {.name = "score " + name,
          .run = [&stages, score] { return stages.score(score, ""); },
          .request = fields(score),
          .identity = request.program + request.tokenizer + request.held_out,
          .inputs = {"model.fwy"},
          .outputs = {file},
          .save_as = file,
          .shared = true};
}

ScoreRequest as_recipe_says(const ChainRequest& request, const Recipe& recipe) {
  ScoreRequest score = score_request(recipe, (fs::path(request.out) / "model.fwy").string(), request.data);
  score.tokenizer = request.tokenizer_file;
  return score;
}

Phase score_phase(const ChainRequest& request, const Recipe& recipe, const Stages& stages) {
  const ScoreRequest score = as_recipe_says(request, recipe);
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
  const AuditRequest audit{as_recipe_says(request, recipe), (fs::path(request.out) / "receipt.json").string()};
  return {.name = "audit",
          .run = [&stages, audit] { return stages.audit(audit); },
          .request = fields(audit.score),
          .identity = request.program + request.tokenizer + request.held_out,
          .inputs = {"model.fwy", "score.json"},
          .outputs = {"receipt.json", "audit.json"},
          .save_as = "audit.json",
          .gives_verdict = true};
}

Phase samples_phase(const ChainRequest& request, const Stages& stages) {
  const SamplesRequest samples{.model = (fs::path(request.out) / "model.fwy").string(),
                               .tokenizer = request.tokenizer_file.empty()
                                                ? (fs::path(request.data) / "tokenizer.model").string()
                                                : request.tokenizer_file,
                               .prompts = request.prompts,
                               .weights = request.out,
                               .data = request.data};
  return {.name = "samples",
          .run = [&stages, samples] { return stages.samples(samples); },
          .request = {{"prompts", samples.prompts},
                      {"beginnings", samples.beginnings},
                      {"tokens", samples.tokens},
                      {"temperature", samples.temperature},
                      {"seed", samples.seed}},
          .identity = request.tokenizer + request.held_out,
          .inputs = {"model.fwy", "averaged.safetensors"},
          .outputs = {"samples.json"},
          .save_as = "samples.json",
          .keep_result = false};
}

Phase report_phase(const ChainRequest& request, const Stages& stages) {
  return {.name = "report",
          .run = [&stages, folder = request.out] { return stages.report(folder); },
          .inputs = {"metrics.jsonl", "pack.json", "score.json", "score_plain.json", "score_sliding.json", "audit.json",
                     "samples.json", "machine.json"},
          .outputs = {"report.html"},
          .before = [folder = fs::path(request.out)] { write_file_atomic(folder / "train.log", closed_log(folder)); }};
}

}  // namespace

std::vector<Phase> plan_phases(const ChainRequest& request, const Recipe& recipe, const Stages& stages) {
  std::vector<Phase> phases{train_phase(request, recipe, stages)};
  if (!request.training_only) {
    phases.push_back(pack_phase(request, stages));
    for (const ScoringMode mode : {ScoringMode{ScoreMode::plain}, ScoringMode{ScoreMode::sliding}}) {  // up to the recipe's own
      if (recipe.score.mode == mode) break;
      phases.push_back(windows_phase(request, recipe, stages, mode));
    }
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
