#include "train/run_folder.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Keeps the lines of whole records up to `step`; returns the last of them. A line cut by a kill is dropped, and so is the
// validation after `step`: it is made after that step's checkpoint, so the resumed run makes it again.
json cut_lines(const fs::path& path, int64_t step) {
  if (!fs::is_regular_file(path)) return nullptr;
  std::ifstream in(path);
  std::string kept, line;
  json last;
  while (std::getline(in, line)) {
    const json record = parse_json_or_discard(line, path.string());
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number_integer()) break;
    const auto at = record["step"].get<int64_t>();
    if (at > step || (at == step && record.contains("val_loss"))) break;
    kept += line + "\n";
    last = record;
  }
  if (in.is_open()) write_file_atomic(path, kept);
  return last;
}

// The log's lines up to `step`, by the same rule. What follows the last step (the averages, their score) is told again.
void cut_log(const fs::path& path, int64_t step) {
  if (!fs::is_regular_file(path)) return;
  std::ifstream in(path);
  std::string kept, line;
  while (std::getline(in, line)) {
    if (line.starts_with("stopping_early:") || line.starts_with("DIAGNOSTIC") || line.find(":applying ") != std::string::npos)
      break;
    const size_t at = line.find("step:");
    const int64_t told = at == std::string::npos ? 0 : std::strtoll(line.c_str() + at + 5, nullptr, 10);
    // Validations and switches of a stage are told after the checkpoint of their step.
    const bool after = line.find("val_loss:") != std::string::npos || line.find(":enabled ") != std::string::npos;
    if (told > step || (told == step && after)) break;
    kept += line + "\n";
  }
  if (in.is_open()) write_file_atomic(path, kept);
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

void open_append(std::ofstream& out, const fs::path& path) {
  out.open(path, std::ios::app);
  if (!out) throw WorkError(path.string() + ": cannot be written (" + std::strerror(errno) + ")");
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
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw InputError("--out " + path.string() + ": cannot be created (" + error.message() + ")");
  if (!fs::is_directory(path)) throw InputError("--out " + path.string() + ": is not a folder");
  lock_.emplace(WriterLock::of_folder(path));
  const fs::path recipe_file = path / "recipe.toml";
  const bool taken = holds_run(path);
  if (taken && !resume)
    throw InputError("--out " + path.string() + ": already holds a run; add --resume to continue it, or choose another folder");
  const bool same = fs::exists(recipe_file) && read_file(recipe_file) == to_toml(recipe);
  if (!taken && left_behind(path) && !(resume && same)) {
    for (const char* name : {"recipe.toml", "metrics.jsonl", "timing.jsonl", "train.log", "checkpoint"})
      fs::remove_all(path / name);
  }
  if (fs::exists(recipe_file)) extension_ = require_same_recipe(recipe_file, recipe);
  if (!extension_.empty())
    recipe_ = to_toml(recipe);
  else if (!fs::exists(recipe_file))
    write_file_atomic(recipe_file, to_toml(recipe));
}

void RunFolder::require_space(size_t bytes_needed) const {
  std::error_code error;
  const fs::space_info space = fs::space(path_, error);
  if (!error && space.available < bytes_needed) {
    throw InputError(fmt::format(
        "--out {}: {} MiB are free on that disk, but the run's checkpoints and weights need {} MiB; free some, or choose "
        "another folder",
        path_.string(), space.available >> 20, (bytes_needed >> 20) + 1));
  }
}

double RunFolder::cut_back(int64_t step) {
  if (!writes()) return 0;
  cut_lines(path_ / "metrics.jsonl", step);
  cut_log(path_ / "train.log", step);
  const json last = cut_lines(path_ / "timing.jsonl", step);
  const bool known = last.is_object() && last.contains("train_seconds") && last["train_seconds"].is_number();
  return known ? last["train_seconds"].get<double>() : 0;
}

void RunFolder::open_records() {
  if (!writes()) return;
  if (!recipe_.empty()) write_file_atomic(path_ / "recipe.toml", recipe_);
  open_append(metrics_, path_ / "metrics.jsonl");
  open_append(timing_, path_ / "timing.jsonl");
  open_append(log_, path_ / "train.log");
}

void RunFolder::put(std::ofstream& out, const char* name, const std::string& line) {
  if (!writes()) return;
  errno = 0;
  out << line << std::flush;
  if (!out && trouble_.empty())
    trouble_ = fmt::format("{}: cannot be written ({})", (path_ / name).string(), std::strerror(errno));
}

void RunFolder::record(const StepRecord& r, double elapsed, double step_seconds, double waited) {
  put(metrics_, "metrics.jsonl",
      fmt::format(
          "{{\"step\":{},\"loss\":{},\"grad_norm\":{},\"lr_scale\":{},\"momentum\":{},\"looped\":{},\"fake_quant\":{}}}\n",
          r.step, r.loss, r.gradient_norm, r.learning_rate_scale, r.momentum, r.looped, r.fake_quant));
  put(timing_, "timing.jsonl",
      fmt::format("{{\"step\":{},\"train_seconds\":{:.6f},\"step_ms\":{:.3f},\"data_wait_seconds\":{:.6f}}}\n", r.step, elapsed,
                  step_seconds * 1e3, waited));
}

void RunFolder::record_validation(int64_t step, double loss, double bpb) {
  put(metrics_, "metrics.jsonl", fmt::format("{{\"step\":{},\"val_loss\":{},\"val_bpb\":{}}}\n", step, loss, bpb));
}

void RunFolder::log(const std::string& line) { put(log_, "train.log", line + "\n"); }

}  // namespace fairway
