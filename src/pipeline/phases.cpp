#include "pipeline/phases.h"

#include <fmt/core.h>

#include <algorithm>

#include "recipe/recipe_json.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kSampleTokens = "80";

void append(Arguments& to, const Arguments& more) { to.insert(to.end(), more.begin(), more.end()); }

// --set for each key below `table` that is not at its default; an artifact does not hold the recipe's way of scoring.
void add_changes(const std::string& prefix, const ordered_json& have, const ordered_json& usual, Arguments& out) {
  for (const auto& [key, value] : have.items()) {
    if (value == usual[key]) continue;
    if (value.is_object())
      add_changes(prefix + key + ".", value, usual[key], out);
    else
      append(out, {"--set", prefix + key + "=" + value.dump()});
  }
}

Arguments scoring(const ChainRequest& request, const Recipe& recipe, const std::string& command) {
  Arguments out{command, (fs::path(request.out) / "model.fwy").string(), "--data", request.data};
  append(out, {"--mode", std::string(name_of(recipe.score.mode)), "--context", fmt::format("{}", recipe.score.context)});
  if (recipe.score.mode != ScoreMode::plain)
    append(out, {"--stride", fmt::format("{}", std::min(recipe.score.stride, recipe.score.context))});
  Recipe rest = recipe;  // what has no flag of its own
  rest.score.mode = ScoreRecipe{}.mode;
  rest.score.context = ScoreRecipe{}.context;
  rest.score.stride = ScoreRecipe{}.stride;
  Recipe usual;
  usual.score.documents = packs_documents(recipe);  // an artifact says how it was trained
  add_changes("score.", to_json_value(rest)["score"], to_json_value(usual)["score"], out);
  return out;
}

Phase train_phase(const ChainRequest& request, const Recipe& recipe) {
  Phase phase{.name = "train", .command = {"train", request.recipe, "--data", request.data, "--out", request.out, "--resume"}};
  for (const std::string& change : request.overrides) append(phase.command, {"--set", change});
  phase.flags = request.backend;
  phase.identity = recipe_hash(recipe) + request.tokenizer;
  phase.outputs = {"averaged.safetensors"};
  phase.present = {"recipe.toml", "metrics.jsonl", "timing.jsonl", "train.log"};
  if (schedule_clock(recipe) == ScheduleClock::time) phase.expected_seconds = recipe.train.seconds;
  return phase;
}

Phase plain_phase(const ChainRequest& request, const Recipe& recipe) {
  Phase phase{.name = "score plain"};
  phase.command = {"score", (fs::path(request.out) / "model.fwy").string(), "--data", request.data, "--mode", "plain"};
  if (recipe.score.documents != packs_documents(recipe))
    append(phase.command, {"--set", fmt::format("score.documents={}", recipe.score.documents)});
  phase.flags = request.backend;
  phase.inputs = {"model.fwy"};
  phase.save_as = "score_plain.json";
  phase.outputs = {phase.save_as};
  phase.identity = request.program + request.tokenizer + request.held_out;
  return phase;
}

Phase samples_phase(const ChainRequest& request) {
  Phase phase{.name = "samples"};
  phase.command = {"generate",      (fs::path(request.out) / "model.fwy").string(),
                   "--tokenizer",   (fs::path(request.data) / "tokenizer.model").string(),
                   "--tokens",      kSampleTokens,
                   "--temperature", "0.7",
                   "--seed",        "7"};
  phase.flags = request.backend;
  phase.prompts = request.prompts;
  phase.identity = request.tokenizer;
  phase.inputs = {"model.fwy"};
  phase.save_as = "samples.json";
  phase.outputs = {phase.save_as};
  return phase;
}

std::vector<Phase> after_training(const ChainRequest& request, const Recipe& recipe) {
  const std::string folder = request.out;
  Phase pack{.name = "pack", .command = {"pack", folder, "--data", request.data}};
  append(pack.command, request.packing);
  pack.flags = request.backend;
  const std::string made_by = request.program + request.tokenizer;
  pack.identity = made_by;  // the code's bytes are part of its budget
  pack.inputs = {"averaged.safetensors", "recipe.toml"};
  pack.outputs = {"model.fwy", "pack.json"};
  Phase score{.name = "score", .command = scoring(request, recipe, "score")};
  append(score.command, {"--out", folder});
  score.flags = request.backend;
  score.identity = made_by + request.held_out;
  score.inputs = {"model.fwy"};
  score.outputs = {"score.json"};
  score.present = {"receipt.json", "score.records"};
  Phase audit{.name = "audit", .command = scoring(request, recipe, "audit")};
  append(audit.command, {"--receipt", (fs::path(folder) / "receipt.json").string()});
  audit.flags = request.backend;
  audit.identity = made_by + request.held_out;
  audit.inputs = {"model.fwy", "score.json"};
  audit.save_as = "audit.json";
  audit.outputs = {"receipt.json", "audit.json"};
  Phase report{.name = "report", .command = {"report", folder}};
  report.inputs = {"metrics.jsonl", "pack.json",    "score.json",  "score_plain.json",
                   "audit.json",    "samples.json", "machine.json"};
  report.outputs = {"report.html"};
  std::vector<Phase> phases{pack, plain_phase(request, recipe), score, audit, samples_phase(request), report};
  if (recipe.score.mode == ScoreMode::plain) phases.erase(phases.begin() + 1);
  return phases;
}

}  // namespace

std::vector<Phase> plan_phases(const ChainRequest& request, const Recipe& recipe) {
  std::vector<Phase> phases{train_phase(request, recipe)};
  if (!request.training_only) {
    for (Phase& phase : after_training(request, recipe)) phases.push_back(std::move(phase));
  }
  for (Phase& phase : phases) {
    const std::string& command = phase.command.front();
    phase.shared = command == "train" || command == "pack" || command == "score";
    const auto known = request.expected.find(phase.name);
    if (known != request.expected.end()) phase.expected_seconds = known->second;
  }
  return phases;
}

Outcome execute_phase(const Phase& phase, const Execute& execute) {
  Arguments command = phase.command;
  append(command, phase.flags);
  if (phase.prompts.empty()) return execute(command);
  Outcome all{.result = ordered_json::array()};
  for (const std::string& prompt : phase.prompts) {
    Arguments one = command;
    one.push_back("--prompt=" + prompt);  // one word: a prompt may begin with a dash
    Outcome made = execute(one);
    if (made.status != 0) return made;
    all.result.push_back({{"prompt", prompt}, {"text", made.result.value("text", "")}});
  }
  return all;
}

}  // namespace fairway::pipeline
