#include "report/csv.h"

#include <cmath>
#include <map>

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "recipe/recipe.h"
#include "report/records.h"
#include "report/run_data.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// Whole numbers without ".0", so that every reader takes a column of them as such.
std::string csv_number(const ordered_json& record, const char* key) {
  constexpr double kMostExact = 9e15;
  if (!record.is_object() || !record.contains(key) || !record[key].is_number()) return "";
  const auto value = record[key].get<double>();
  const bool whole = std::abs(value) < kMostExact && std::floor(value) == value;
  return whole ? std::to_string(static_cast<int64_t>(value)) : record[key].dump();
}

fs::path put_csv(const fs::path& folder, const std::string& name, const std::string& text) {
  if (const std::error_code error = disk::make_folders(folder))
    throw InputError(folder.string() + ": cannot be created (" + error.message() + ")");
  fs::path path = folder / (name + ".csv");
  const WriterLock lock = WriterLock::of_file(path);
  write_file_atomic(path, text);
  return path;
}

}  // namespace

fs::path write_steps_csv(const fs::path& run, const fs::path& folder, const std::string& name) {
  const fs::path recipe_file = run / "recipe.toml";
  const int64_t batch = parse_recipe(read_file(recipe_file), recipe_file.string()).train.batch_tokens;
  std::map<int64_t, ordered_json> steps;
  for (const char* file : {"metrics.jsonl", "timing.jsonl"}) {
    for (const ordered_json& record : read_records(run / file))
      if (record.contains("step") && record["step"].is_number_integer()) {
        ordered_json& step = steps[record["step"].get<int64_t>()];
        for (const auto& [key, value] : record.items()) step[key] = value;
      }
  }
  constexpr const char* kColumns[] = {"train_seconds", "step_ms",  "loss",     "grad_norm",
                                      "lr_scale",      "momentum", "val_loss", "val_bpb"};
  std::string text = "step,tokens";
  for (const char* column : kColumns) text += std::string(",") + column;
  for (const auto& [step, record] : steps) {
    text += "\r\n" + std::to_string(step) + "," + std::to_string(step * batch);
    for (const char* column : kColumns) text += "," + csv_number(record, column);
  }
  return put_csv(folder, name, text + "\r\n");
}

fs::path write_runs_csv(std::span<const fs::path> runs, std::span<const std::string> names, const fs::path& folder) {
  constexpr const char* kColumns[] = {
      "seed",           "parameters",      "steps", "loss", "val_bpb", "train_seconds", "tokens_per_second",
      "artifact_bytes", "submission_bytes"};
  std::string text = "run";
  for (const char* column : kColumns) text += std::string(",") + column;
  text += ",score_mode,score_bpb,score_nats,legal";
  for (size_t i = 0; i < runs.size(); ++i) {
    const ordered_json run = read_run(runs[i], 1), score = read_record_file(runs[i] / "score.json");
    text += "\r\n" + csv_field(names[i]);
    for (const char* column : kColumns) text += "," + csv_number(run["summary"], column);
    const bool told = score.is_object();
    text +=
        "," + csv_field(told && score.contains("mode") && score["mode"].is_string() ? score["mode"].get<std::string>() : "");
    text += "," + csv_number(score, "val_bpb") + "," + csv_number(score, "val_loss") + ",";
    if (run["audit"].is_object() && run["audit"].contains("legal")) text += run["audit"]["legal"].dump();
  }
  return put_csv(folder, "runs", text + "\r\n");
}

}  // namespace fairway
