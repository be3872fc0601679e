#include "train/run_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/disk.h"
#include "base/error.h"
#include "base/json.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kTiming = "timing.jsonl";
constexpr const char* kLog = "train.log";

// Whole lines: what follows the last line's end was cut by a kill or a full disk.
std::vector<std::string> whole_lines(const fs::path& path) {
  if (!fs::is_regular_file(path)) return {};
  const std::string text = read_file(path);
  std::vector<std::string> lines;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

// The lines of whole records up to `step`. The validation after `step` is left out: it is made after that step's checkpoint, so
// the resumed run makes it again.
std::vector<json> records_up_to(const fs::path& path, int64_t step, std::string& kept) {
  std::vector<json> records;
  for (const std::string& line : whole_lines(path)) {
    json record = parse_json_or_discard(line, path.string());
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) break;
    const auto at = record["step"].get<int64_t>();
    if (at > step || (at == step && record.contains("val_loss"))) break;
    kept += line + "\n";
    records.push_back(std::move(record));
  }
  return records;
}

// The log's lines up to `step`, by the same rule. What follows the last step (the averages, their score) is told again.
std::string log_up_to(const fs::path& path, int64_t step) {
  std::string kept;
  for (const std::string& line : whole_lines(path)) {
    if (line.starts_with("stopping_early:") || line.starts_with("DIAGNOSTIC") || line.find(":applying ") != std::string::npos)
      break;
    const size_t at = line.find("step:");
    const int64_t told = at == std::string::npos ? 0 : std::strtoll(line.c_str() + at + 5, nullptr, 10);
    // Validations and switches of a stage are told after the checkpoint of their step.
    const bool after = line.find("val_loss:") != std::string::npos || line.find(":enabled ") != std::string::npos;
    if (told > step || (told == step && after)) break;
    kept += line + "\n";
  }
  return kept;
}

// The checkpoint after `step` was made of steps 1 to `step`, and each of them was recorded first.
void require_every_step(const fs::path& path, const std::string& text, int64_t step) {
  int64_t recorded = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const json record = parse_json_or_discard(line, path.string());
    if (record.contains("loss") && record.value("step", int64_t{0}) == recorded + 1) ++recorded;
  }
  if (recorded < step)
    throw InputError(
        fmt::format("{}: its records end after step {}, but the checkpoint was made after step {}; the steps "
                    "between are lost, so train anew in another folder",
                    path.string(), recorded, step));
}

// What a run's length is, in the unit that ends it.
std::string length_of(const Recipe& recipe) {
  return schedule_clock(recipe) == ScheduleClock::steps ? fmt::format("{} steps", recipe.train.steps)
                                                        : fmt::format("{} seconds", recipe.train.seconds);
}

// A run is one recipe from beginning to end, also when it was stopped before its first checkpoint; only its length may grow.
// Returns a sentence where it does.
std::string require_same_recipe(const fs::path& path, const Recipe& recipe) {
  const Recipe before = parse_recipe(read_file(path), path.string());
  const std::string stored = to_toml(before), given = to_toml(recipe);
  if (stored == given) return "";
  Recipe longer = before;
  longer.train.steps = recipe.train.steps;
  longer.train.seconds = recipe.train.seconds;
  const bool grows = schedule_clock(before) != schedule_clock(recipe) || recipe.train.steps > before.train.steps ||
                     (recipe.train.steps == before.train.steps && recipe.train.seconds > before.train.seconds);
  if (longer == recipe && grows)
    return fmt::format("extended from {} to {}; the schedule follows the new length", length_of(before), length_of(recipe));
  std::istringstream old_lines(stored), new_lines(given);
  std::string table, was, now;
  while (std::getline(old_lines, was) && std::getline(new_lines, now) && was == now) {
    if (was.starts_with('[')) table = was + " ";
  }
  throw InputError(fmt::format(
      "{}: the run has {}{}, this command gives {}; resume with the same recipe and overrides, or with more steps or seconds",
      path.string(), table, was, now));
}

// The mark of a command that got as far as to make its folder. A recipe that lies somewhere alone is somebody's own file.
bool left_behind(const fs::path& folder) { return fs::exists(folder / "shared_documents.json"); }

}  // namespace

bool holds_run(const fs::path& folder) {
  const fs::path metrics = folder / "metrics.jsonl";
  const bool recorded = fs::is_regular_file(metrics);
  if (fs::exists(folder / "averaged.safetensors") || (recorded && fs::file_size(metrics) > 0)) return true;
  if (left_behind(folder)) return !recorded && fs::exists(folder / "checkpoint");
  return fs::exists(folder / "recipe.toml") || fs::exists(folder / "checkpoint");
}

RunFolder::RunFolder(const fs::path& path, const Recipe& recipe, bool resume) : path_(path) {
  if (const std::error_code error = disk::make_folders(path))
    throw InputError("--out " + path.string() + ": cannot be created (" + error.message() + ")");
  if (!fs::is_directory(path)) throw InputError("--out " + path.string() + ": is not a folder");
  lock_.emplace(WriterLock::of_folder(path));
  const fs::path recipe_file = path / "recipe.toml";
  const bool taken = holds_run(path);
  if (taken && !resume)
    throw InputError("--out " + path.string() + ": already holds a run; add --resume to continue it, or choose another folder");
  const bool same = fs::exists(recipe_file) && read_file(recipe_file) == to_toml(recipe);
  if (!taken && left_behind(path) && !(resume && same)) {
    for (const char* name : {"recipe.toml", kMetrics, kTiming, kLog, "checkpoint"}) remove_file(path / name);
  }
  if (fs::exists(recipe_file)) extension_ = require_same_recipe(recipe_file, recipe);
  if (!extension_.empty())
    recipe_ = to_toml(recipe);
  else if (!fs::exists(recipe_file))
    write_file_atomic(recipe_file, to_toml(recipe));
}

void RunFolder::require_space(size_t whole) const {
  std::error_code error;
  uintmax_t there = 0;  // files of a resumed run, which the new ones replace
  for (const char* name : {"averaged.safetensors", "checkpoint/latest.safetensors", "checkpoint/previous.safetensors"})
    if (const uintmax_t bytes = fs::file_size(path_ / name, error); !error) there += bytes;
  const uintmax_t bytes_needed = whole - std::min<uintmax_t>(whole, there);
  const fs::space_info space = fs::space(path_, error);
  if (!error && space.available < bytes_needed) {
    throw InputError(fmt::format(
        "--out {}: {} MiB are free on that disk, but the run's checkpoints and weights need {} MiB; free some, or choose "
        "another folder",
        path_.string(), space.available >> 20, (bytes_needed >> 20) + 1));
  }
}

double RunFolder::cut_back(int64_t step, const UnwrittenRecords& unwritten) {
  if (!writes()) return 0;
  const auto rest = [&](const char* name) {
    const auto found = unwritten.find(name);
    return found == unwritten.end() ? std::string() : found->second;
  };
  const auto replace = [&](const char* name, const std::string& text) {
    if (fs::is_regular_file(path_ / name) || !text.empty()) write_file_atomic(path_ / name, text);
  };
  std::string metrics, timing;
  records_up_to(path_ / kMetrics, step, metrics);
  metrics += rest(kMetrics);
  require_every_step(path_ / kMetrics, metrics, step);
  const std::vector<json> times = records_up_to(path_ / kTiming, step, timing);
  replace(kMetrics, metrics);
  replace(kTiming, timing + rest(kTiming));
  replace(kLog, log_up_to(path_ / kLog, step) + rest(kLog));
  const json last = times.empty() ? json() : times.back();
  const bool known = last.is_object() && last.contains("train_seconds") && last["train_seconds"].is_number();
  return known ? last["train_seconds"].get<double>() : 0;
}

void RunFolder::open_records() {
  if (!writes()) return;
  if (!recipe_.empty()) write_file_atomic(path_ / "recipe.toml", recipe_);
  for (const char* name : {kMetrics, kTiming, kLog}) records_.emplace(name, path_ / name);
}

void RunFolder::note_trouble(const std::exception& error) {
  if (trouble_.empty()) trouble_ = error.what();
}

void RunFolder::put(const char* name, const std::string& line) {
  if (!writes()) return;
  if (unwritten_.contains(name)) {  // behind what is missing
    unwritten_[name] += line;
    return;
  }
  try {
    records_.at(name).write(line);
  } catch (const WorkError& error) {
    note_trouble(error);
    unwritten_[name] = line;
  }
}

void RunFolder::sync() {
  try {
    for (auto& [name, file] : records_) file.sync();
  } catch (const WorkError& error) {
    note_trouble(error);
  }
}

void RunFolder::record(const StepRecord& r, double elapsed, double step_seconds, double waited) {
  put(kMetrics,
      fmt::format(
          "{{\"step\":{},\"loss\":{},\"grad_norm\":{},\"lr_scale\":{},\"momentum\":{},\"looped\":{},\"fake_quant\":{}}}\n",
          r.step, r.loss, r.gradient_norm, r.learning_rate_scale, r.momentum, r.looped, r.fake_quant));
  put(kTiming, fmt::format("{{\"step\":{},\"train_seconds\":{:.6f},\"step_ms\":{:.3f},\"data_wait_seconds\":{:.6f}}}\n", r.step,
                           elapsed, step_seconds * 1e3, waited));
}

void RunFolder::record_validation(int64_t step, double loss, double bpb) {
  put(kMetrics, fmt::format("{{\"step\":{},\"val_loss\":{},\"val_bpb\":{}}}\n", step, loss, bpb));
}

void RunFolder::log(const std::string& line) { put(kLog, line + "\n"); }

}  // namespace fairway
