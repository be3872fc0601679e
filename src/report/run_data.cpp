#include "report/run_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/shape/model_shape.h"
#include "recipe/recipe.h"
#include "report/machine.h"
#include "report/records.h"
#include "report/run_state.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Seven digits are more than a chart shows, and half the bytes of all of them.
ordered_json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.7g", value);
  return std::strtod(text.data(), nullptr);
}

// Means over equal stretches of steps, so that a long run draws as smoothly as a short one. Where a stretch is on an axis is
// where it ends.
class Curve {
 public:
  explicit Curve(size_t most_points) : most_points_(most_points) {}
  void add(const char* key, double value) { columns_[key].push_back(value); }
  ordered_json reduced() const {
    ordered_json out = ordered_json::object();
    for (const auto& [key, values] : columns_) {
      const size_t stretch = (values.size() + most_points_ - 1) / most_points_;
      const bool axis = key == "step" || key == "tokens" || key == "seconds";
      ordered_json points = ordered_json::array();
      for (size_t at = 0; at < values.size(); at += stretch) {
        const size_t end = std::min(values.size(), at + stretch);
        double sum = 0;
        for (size_t i = at; i < end; ++i) sum += values[i];
        points.push_back(rounded(axis ? values[end - 1] : sum / static_cast<double>(end - at)));
      }
      out[key] = std::move(points);
    }
    return out;
  }

 private:
  size_t most_points_;
  std::map<std::string, std::vector<double>> columns_{
      {"step", {}}, {"tokens", {}},   {"seconds", {}},   {"loss", {}},
      {"lr", {}},   {"momentum", {}}, {"grad_norm", {}}, {"tokens_per_second", {}}};
};

// By step: of a run that goes on, either file may be a line ahead.
struct StepTimes {
  std::map<double, double> rates, seconds;
  double waited = 0;
  double at(const std::map<double, double>& times, double step) const {
    const auto found = times.find(step);
    return found != times.end() ? found->second : std::nan("");
  }
};

StepTimes read_times(const fs::path& folder, double batch_tokens, ordered_json& summary) {
  StepTimes times;
  for (const ordered_json& record : read_records(folder / "timing.jsonl")) {
    const double step = number_of(record, "step", -1);
    times.rates[step] = batch_tokens * 1e3 / number_of(record, "step_ms");
    times.seconds[step] = number_of(record, "train_seconds");
    summary["train_seconds"] = number_of(record, "train_seconds");
    times.waited = number_of(record, "data_wait_seconds", 0);
  }
  return times;
}

void read_curves(const fs::path& folder, double batch_tokens, size_t most_points, ordered_json& run) {
  Curve curve(most_points);
  ordered_json validation = ordered_json::array();
  ordered_json& summary = run["summary"];
  const StepTimes times = read_times(folder, batch_tokens, summary);
  for (const ordered_json& record : read_records(folder / "metrics.jsonl")) {
    const double step = number_of(record, "step");
    if (record.contains("val_loss")) {
      validation.push_back({{"step", step},
                            {"tokens", step * batch_tokens},
                            {"seconds", rounded(times.at(times.seconds, step))},
                            {"loss", number_of(record, "val_loss")}});
      summary["val_bpb"] = number_of(record, "val_bpb");
      continue;
    }
    curve.add("step", step);
    curve.add("tokens", step * batch_tokens);
    curve.add("seconds", times.at(times.seconds, step));
    curve.add("loss", number_of(record, "loss"));
    curve.add("lr", number_of(record, "lr_scale"));
    curve.add("momentum", number_of(record, "momentum"));
    curve.add("grad_norm", number_of(record, "grad_norm"));
    if (!times.rates.empty()) curve.add("tokens_per_second", times.at(times.rates, step));
    summary["steps"] = step;
    summary["loss"] = number_of(record, "loss");
  }
  if (summary.contains("train_seconds") && summary.contains("steps")) {
    const auto seconds = summary["train_seconds"].get<double>();
    summary["tokens_per_second"] = batch_tokens * summary["steps"].get<double>() / seconds;
    run["phases"]["training"] = seconds;
    run["phases"]["waiting for data"] = times.waited;
  }
  run["curve"] = curve.reduced();
  run["validation"] = std::move(validation);
}

std::string mode_of(const ordered_json& score) {
  return score.contains("mode") && score["mode"].is_string() ? score["mode"].get<std::string>() : "plain";
}

// The run's own scores, then the rungs of a ladder that it has no score of; plain comes first. Each file is one score, a list
// or
// {"ladder": […]}.
void read_scores(const fs::path& folder, ordered_json& run) {
  std::vector<ordered_json> found;
  for (const char* name : {"score_plain.json", "score_sliding.json", "score.json", "ladder.json"}) {
    ordered_json scores = read_record_file(folder / name);
    if (scores.is_object() && scores.contains("ladder")) scores = scores["ladder"];
    if (scores.is_object()) scores = ordered_json::array({scores});
    for (const ordered_json& score : scores) {
      const auto same = [&](const ordered_json& other) { return mode_of(other) == mode_of(score); };
      if (!score.is_object() || !score.contains("val_bpb")) continue;
      if (std::none_of(found.begin(), found.end(), same)) found.push_back(score);
    }
  }
  std::stable_partition(found.begin(), found.end(), [](const ordered_json& score) { return mode_of(score) == "plain"; });
  for (const ordered_json& score : found) {
    run["scores"].push_back(score);
    run["phases"]["scoring " + mode_of(score)] = number_of(score, "seconds", 0);
  }
}

void read_artifact_records(const fs::path& folder, ordered_json& run) {
  const ordered_json pack = read_record_file(folder / "pack.json");
  if (!pack.is_object()) return;
  for (const auto& [key, name] : {std::pair{"artifact_bytes", "artifact_bytes"},
                                  {"budget", "budget_bytes"},
                                  {"code_bytes", "code_bytes"},
                                  {"submission_bytes", "submission_bytes"}})
    if (pack.contains(key)) run["summary"][name] = pack[key];
  if (pack.contains("ledger") && pack["ledger"].is_array()) run["ledger"] = pack["ledger"];
  if (pack.contains("tensors") && pack["tensors"].is_array()) {
    for (const ordered_json& tensor : pack["tensors"]) {
      if (tensor.is_object() && tensor.contains("name") && tensor.contains("bits") && tensor.contains("loss"))
        run["tensors"].push_back({{"name", tensor["name"]}, {"bits", tensor["bits"]}, {"loss", tensor["loss"]}});
    }
  }
  if (pack.contains("seconds") && pack["seconds"].is_object()) {
    for (const auto& [phase, seconds] : pack["seconds"].items()) run["phases"][phase] = seconds;
  }
}

// What the whole pipeline noted in run.json: how long each phase took, and how much of the machine's peak training reached.
void read_pipeline(const fs::path& folder, ordered_json& run) {
  const ordered_json ledger = read_record_file(folder / "run.json");
  if (!ledger.is_object() || !ledger.contains("phases") || !ledger["phases"].is_object()) return;
  ordered_json seconds = ordered_json::object();
  for (const auto& [name, phase] : ledger["phases"].items())
    if (const double spent = number_of(phase, "seconds"); std::isfinite(spent)) seconds[name] = spent;
  if (!seconds.empty()) run["phases"] = seconds;
  const ordered_json phase = ledger["phases"].value("train", ordered_json());
  if (!phase.is_object()) return;
  const ordered_json train = phase.value("result", ordered_json::object());
  const double light = number_of(train, "speed_of_light", 0), rate = number_of(train, "tokens_per_second", 0);
  if (!(light > 0) || !(rate > 0)) return;
  run["summary"]["speed_of_light"] = light;
  run["light_per_token"] = light / rate;
}

// machine.json is what `fairway doctor --json` prints; its peak is the CPU's.
void read_machine(const fs::path& folder, const Recipe& recipe, ordered_json& run) {
  ordered_json machine = read_record_file(folder / "machine.json");
  if (!machine.is_object()) return;
  const double peak = number_of(machine, "peak_gflops", 0), rate = number_of(run["summary"], "tokens_per_second", 0);
  if (run["light_per_token"].is_null() && peak > 0 && !has_device(machine)) {
    const double flops = flops_per_token(recipe.model, recipe.data.seq_len, recipe.model.loop.count > 0);
    run["light_per_token"] = flops / (peak * 1e9);
    if (rate > 0) run["summary"]["speed_of_light"] = rate * flops / (peak * 1e9);
  }
  run["machine"] = std::move(machine);
}

}  // namespace

ordered_json read_run(const fs::path& folder, size_t most_points) {
  const fs::path recipe_file = folder / "recipe.toml";
  if (!fs::exists(recipe_file)) throw InputError(folder.string() + ": not a run folder (recipe.toml is missing)");
  const std::string text = read_file(recipe_file);
  const Recipe recipe = parse_recipe(text, recipe_file.string());
  ordered_json run{{"name", folder_name(folder)},
                   {"summary", ordered_json::object()},
                   {"phases", ordered_json::object()},
                   {"scores", ordered_json::array()},
                   {"ledger", ordered_json::array()},
                   {"tensors", ordered_json::array()},
                   {"samples", ordered_json::array()},
                   {"analysis", nullptr},
                   {"audit", nullptr},
                   {"machine", nullptr},
                   {"light_per_token", nullptr},
                   {"recipe", text}};
  run["summary"]["parameters"] = parameter_count(recipe.model);
  run["summary"]["seed"] = recipe.train.seed;
  if (schedule_clock(recipe) == ScheduleClock::time)
    run["summary"]["budget_seconds"] = recipe.train.seconds;
  else
    run["summary"]["budget_steps"] = recipe.train.steps;
  read_curves(folder, static_cast<double>(recipe.train.batch_tokens), most_points, run);
  read_scores(folder, run);
  read_artifact_records(folder, run);
  if (const ordered_json samples = read_record_file(folder / "samples.json"); samples.is_array()) run["samples"] = samples;
  if (const ordered_json analysis = read_record_file(folder / "analysis.json"); analysis.is_object())
    run["analysis"] = analysis;
  if (const ordered_json audit = read_record_file(folder / "audit.json"); audit.is_object() && audit.contains("tests"))
    run["audit"] = audit;
  read_pipeline(folder, run);
  read_machine(folder, recipe, run);
  run["state"] = run_state(folder, recipe);
  return run;
}

}  // namespace fairway
