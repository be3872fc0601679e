#include "report/run_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/shape/model_shape.h"
#include "recipe/recipe.h"
#include "report/machine.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr size_t kMostPoints = 500;  // per curve: more cannot be seen and would make the page large

// Whole lines that are JSON objects; the last line of a run that is being written may be cut.
std::vector<ordered_json> read_records(const fs::path& path) {
  std::vector<ordered_json> records;
  if (fs::exists(path) && !fs::is_regular_file(path)) throw InputError(path.string() + ": expected a file of records");
  if (!fs::exists(path)) return records;
  for (const std::string& line : read_lines(path)) {
    ordered_json record = parse_json_or_discard<ordered_json>(line, path.string());
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

ordered_json read_object(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  ordered_json record = parse_json_or_discard<ordered_json>(read_file(path), path.string());
  if (!record.is_object() && !record.is_array()) throw InputError(path.string() + ": is not JSON");
  return record;
}

double number(const ordered_json& record, const char* key, double otherwise = std::nan("")) {
  return record.is_object() && record.contains(key) && record[key].is_number() ? record[key].get<double>() : otherwise;
}

// Means over equal stretches of steps, so that a long run draws as smoothly as a short one.
class Curve {
 public:
  void add(const char* key, double value) { columns_[key].push_back(value); }
  ordered_json reduced() const {
    ordered_json out = ordered_json::object();
    for (const auto& [key, values] : columns_) {
      const size_t stretch = (values.size() + kMostPoints - 1) / kMostPoints;
      ordered_json points = ordered_json::array();
      for (size_t at = 0; at < values.size(); at += stretch) {
        const size_t end = std::min(values.size(), at + stretch);
        double sum = 0;
        for (size_t i = at; i < end; ++i) sum += values[i];
        const double mean = key == "step" ? values[end - 1] : sum / static_cast<double>(end - at);
        points.push_back(std::isfinite(mean) ? ordered_json(mean) : ordered_json(nullptr));
      }
      out[key] = std::move(points);
    }
    return out;
  }

 private:
  std::map<std::string, std::vector<double>> columns_{{"step", {}},     {"loss", {}},      {"lr", {}},
                                                      {"momentum", {}}, {"grad_norm", {}}, {"tokens_per_second", {}}};
};

void read_curves(const fs::path& folder, int64_t batch_tokens, ordered_json& run) {
  Curve curve;
  ordered_json validation = ordered_json::array();
  ordered_json& summary = run["summary"];
  double waited = 0;
  std::map<double, double> rates;  // by step: of a run that goes on, either file may be a line ahead
  for (const ordered_json& record : read_records(folder / "timing.jsonl")) {
    rates[number(record, "step", -1)] = static_cast<double>(batch_tokens) * 1e3 / number(record, "step_ms");
    summary["train_seconds"] = number(record, "train_seconds");
    waited = number(record, "data_wait_seconds", 0);
  }
  for (const ordered_json& record : read_records(folder / "metrics.jsonl")) {
    if (record.contains("val_loss")) {
      validation.push_back({{"step", number(record, "step")}, {"loss", number(record, "val_loss")}});
      summary["val_bpb"] = number(record, "val_bpb");
      continue;
    }
    curve.add("step", number(record, "step"));
    curve.add("loss", number(record, "loss"));
    curve.add("lr", number(record, "lr_scale"));
    curve.add("momentum", number(record, "momentum"));
    curve.add("grad_norm", number(record, "grad_norm"));
    if (!rates.empty()) {
      const auto rate = rates.find(number(record, "step"));
      curve.add("tokens_per_second", rate != rates.end() ? rate->second : std::nan(""));
    }
    summary["steps"] = number(record, "step");
    summary["loss"] = number(record, "loss");
  }
  if (summary.contains("train_seconds") && summary.contains("steps")) {
    const auto seconds = summary["train_seconds"].get<double>();
    summary["tokens_per_second"] = static_cast<double>(batch_tokens) * summary["steps"].get<double>() / seconds;
    run["phases"]["training"] = seconds;
    run["phases"]["waiting for data"] = waited;
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
    ordered_json scores = read_object(folder / name);
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
    run["phases"]["scoring " + mode_of(score)] = number(score, "seconds", 0);
  }
}

void read_artifact_records(const fs::path& folder, ordered_json& run) {
  const ordered_json pack = read_object(folder / "pack.json");
  if (!pack.is_object()) return;
  if (pack.contains("artifact_bytes")) run["summary"]["artifact_bytes"] = pack["artifact_bytes"];
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
  const ordered_json ledger = read_object(folder / "run.json");
  if (!ledger.is_object() || !ledger.contains("phases") || !ledger["phases"].is_object()) return;
  ordered_json seconds = ordered_json::object();
  for (const auto& [name, phase] : ledger["phases"].items())
    if (const double spent = number(phase, "seconds"); std::isfinite(spent)) seconds[name] = spent;
  if (!seconds.empty()) run["phases"] = seconds;
  const ordered_json phase = ledger["phases"].value("train", ordered_json());
  if (!phase.is_object()) return;
  const ordered_json train = phase.value("result", ordered_json::object());
  const double light = number(train, "speed_of_light", 0), rate = number(train, "tokens_per_second", 0);
  if (!(light > 0) || !(rate > 0)) return;
  run["summary"]["speed_of_light"] = light;
  run["light_per_token"] = light / rate;
}

// machine.json is what `fairway doctor --json` prints; its peak is the CPU's.
void read_machine(const fs::path& folder, const Recipe& recipe, ordered_json& run) {
  ordered_json machine = read_object(folder / "machine.json");
  if (!machine.is_object()) return;
  const double peak = number(machine, "peak_gflops", 0), rate = number(run["summary"], "tokens_per_second", 0);
  if (run["light_per_token"].is_null() && peak > 0 && !has_device(machine)) {
    const double flops = flops_per_token(recipe.model, recipe.data.seq_len, recipe.model.loop.count > 0);
    run["light_per_token"] = flops / (peak * 1e9);
    if (rate > 0) run["summary"]["speed_of_light"] = rate * flops / (peak * 1e9);
  }
  run["machine"] = std::move(machine);
}

}  // namespace

ordered_json read_run(const fs::path& folder) {
  const fs::path recipe_file = folder / "recipe.toml";
  if (!fs::exists(recipe_file)) throw InputError(folder.string() + ": not a run folder (recipe.toml is missing)");
  const std::string text = read_file(recipe_file);
  const Recipe recipe = parse_recipe(text, recipe_file.string());
  const fs::path named = fs::absolute(folder).lexically_normal();
  ordered_json run{{"name", (named.has_filename() ? named : named.parent_path()).filename().string()},
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
  read_curves(folder, recipe.train.batch_tokens, run);
  read_scores(folder, run);
  read_artifact_records(folder, run);
  if (const ordered_json samples = read_object(folder / "samples.json"); samples.is_array()) run["samples"] = samples;
  if (const ordered_json analysis = read_object(folder / "analysis.json"); analysis.is_object()) run["analysis"] = analysis;
  if (const ordered_json audit = read_object(folder / "audit.json"); audit.is_object() && audit.contains("tests"))
    run["audit"] = audit;
  read_pipeline(folder, run);
  read_machine(folder, recipe, run);
  return run;
}

}  // namespace fairway
