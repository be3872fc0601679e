#include "submission/run_facts.h"

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "report/challenge_log.h"
#include "report/counted_calibration.h"
#include "report/last_record.h"
#include "report/run_origin.h"

namespace fairway::submission {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

fs::path required(const fs::path& folder, const char* name, const char* maker) {
  fs::path path = folder / name;
  if (!fs::is_regular_file(path))
    throw InputError(path.string() + ": missing, but a submission needs it; `fairway " + maker + "` makes it");
  return path;
}

ordered_json read_object(const fs::path& path) {
  ordered_json record = parse_json_or_discard<ordered_json>(read_file(path), path.string());
  if (!record.is_object()) throw InputError(path.string() + ": is not a JSON object");
  return record;
}

double number(const ordered_json& record, const char* key, const fs::path& path) {
  if (!record.is_object() || !record.contains(key) || !record[key].is_number() || !std::isfinite(record[key].get<double>()))
    throw InputError(path.string() + ": has no number \"" + key + "\"");
  return record[key].get<double>();
}

int64_t whole_number(const ordered_json& record, const char* key, const fs::path& path) {
  const double value = number(record, key, path);
  if (value != std::floor(value) || std::abs(value) > 1e15)
    throw InputError(path.string() + ": its \"" + key + "\" is " + record[key].dump() + ", expected a whole number");
  return static_cast<int64_t>(value);
}

ordered_json last_with(const fs::path& path, const char* key) {
  ordered_json last = last_record_with(path, key);
  if (!last.is_object()) throw InputError(path.string() + ": no line has \"" + key + "\"");
  return last;
}

}  // namespace

RunFacts read_run_facts(const fs::path& folder) {
  const fs::path recipe = required(folder, "recipe.toml", "train"), timing = required(folder, "timing.jsonl", "train"),
                 metrics = required(folder, "metrics.jsonl", "train"), artifact = required(folder, "model.fwy", "pack"),
                 pack = required(folder, "pack.json", "pack"), score = required(folder, "score.json", "score --out"),
                 receipt = required(folder, "receipt.json", "score --out"),
                 records = required(folder, kRecordsName, "score --out");
  required(folder, "train.log", "train");
  RunFacts facts{.folder = folder, .recipe = parse_recipe(read_file(recipe), recipe.string())};
  const ordered_json last = last_with(timing, "train_seconds"), before = last_with(metrics, "val_bpb");
  facts.steps = whole_number(last, "step", timing);
  facts.train_seconds = number(last, "train_seconds", timing);
  facts.step_ms = facts.steps > 0 ? 1e3 * facts.train_seconds / static_cast<double>(facts.steps) : 0;
  facts.before_loss = number(before, "val_loss", metrics);
  facts.before_bpb = number(before, "val_bpb", metrics);
  facts.pack = read_object(pack);
  number(facts.pack, "artifact_bytes", pack);
  facts.counted_calibration = counted_calibration(facts.pack);
  facts.score = read_object(score);
  for (const char* key : {"val_loss", "val_bpb", "tokens", "bytes", "seconds"}) number(facts.score, key, score);
  facts.receipt = read_object(receipt);
  facts.records = read_score_records(records);
  if (fs::exists(folder / "score_plain.json")) facts.plain = read_object(folder / "score_plain.json");
  if (fs::exists(folder / "machine.json")) facts.machine = read_object(folder / "machine.json");
  if (const auto launch = facts.machine.find("launch"); launch != facts.machine.end() && launch->is_object()) {
    const ordered_json backend = launch->value("backend", ordered_json(""));
    if (!backend.is_string())
      throw InputError((folder / "machine.json").string() + ": its \"backend\" is " + backend.dump() + ", expected a name");
    facts.backend = backend;
    if (launch->contains("ranks")) facts.ranks = whole_number(*launch, "ranks", folder / "machine.json");
  }
  if (const auto origin = read_origin(folder); origin && origin->from) facts.forked_from = origin->from->path;
  facts.artifact_bytes = fs::file_size(artifact);
  facts.artifact_sha256 = sha256_of_file(artifact);
  facts.log = closed_log(folder);
  return facts;
}

}  // namespace fairway::submission
