#include "report/run_data.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr size_t kMostPoints = 500;  // per curve: more cannot be seen and would make the page large

// Whole lines that are JSON objects; the last line of a run that is being written may be cut.
std::vector<ordered_json> read_lines(const fs::path& path) {
  std::vector<ordered_json> records;
  std::ifstream in(path);
  std::string line;
  while (std::getline(in, line)) {
    ordered_json record = ordered_json::parse(line, nullptr, false);
    if (record.is_object()) records.push_back(std::move(record));
  }
  return records;
}

ordered_json read_object(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  ordered_json record = ordered_json::parse(read_file(path), nullptr, false);
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
  for (const ordered_json& record : read_lines(folder / "metrics.jsonl")) {
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
    summary["steps"] = number(record, "step");
    summary["loss"] = number(record, "loss");
  }
  double waited = 0;
  for (const ordered_json& record : read_lines(folder / "timing.jsonl")) {
    curve.add("tokens_per_second", static_cast<double>(batch_tokens) * 1e3 / number(record, "step_ms"));
    summary["train_seconds"] = number(record, "train_seconds");
    waited = number(record, "data_wait_seconds", 0);
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

// score.json is one score or {"ladder": […]} or a list.
void read_scores(const fs::path& folder, ordered_json& run) {
  ordered_json scores = read_object(folder / "score.json");
  if (scores.is_object() && scores.contains("ladder")) scores = scores["ladder"];
  if (scores.is_object()) scores = ordered_json::array({scores});
  if (!scores.is_array()) return;
  if (const ordered_json plain = read_object(folder / "score_plain.json"); plain.is_object())
    scores.insert(scores.begin(), plain);
  for (const ordered_json& score : scores) {
    if (!score.is_object() || !score.contains("val_bpb")) continue;
    run["scores"].push_back(score);
    const std::string mode = score.contains("mode") && score["mode"].is_string() ? score["mode"].get<std::string>() : "plain";
    run["phases"]["scoring " + mode] = number(score, "seconds", 0);
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

}  // namespace

ordered_json read_run(const fs::path& folder) {
  const fs::path recipe_file = folder / "recipe.toml";
  if (!fs::exists(recipe_file)) throw InputError(folder.string() + ": holds no run (recipe.toml is missing)");
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
                   {"heads", ordered_json::array()},
                   {"audit", nullptr},
                   {"machine", ""},
                   {"recipe", text}};
  read_curves(folder, recipe.train.batch_tokens, run);
  read_scores(folder, run);
  read_artifact_records(folder, run);
  if (const ordered_json samples = read_object(folder / "samples.json"); samples.is_array()) run["samples"] = samples;
  if (const ordered_json heads = read_object(folder / "heads.json"); heads.is_array()) run["heads"] = heads;
  if (const ordered_json audit = read_object(folder / "audit.json"); audit.is_object() && audit.contains("tests"))
    run["audit"] = audit;
  if (const ordered_json machine = read_object(folder / "machine.json"); machine.is_object()) run["machine"] = machine.dump(1);
  return run;
}

}  // namespace fairway
