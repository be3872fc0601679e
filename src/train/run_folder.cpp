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

// A run is one recipe from beginning to end, also when it was stopped before its first checkpoint.
void require_same_recipe(const fs::path& path, const Recipe& recipe) {
  const std::string stored = to_toml(parse_recipe(read_file(path), path.string())), given = to_toml(recipe);
  if (stored == given) return;
  std::istringstream old_lines(stored), new_lines(given);
  std::string table, before, now;
  while (std::getline(old_lines, before) && std::getline(new_lines, now) && before == now) {
    if (before.starts_with('[')) table = before + " ";
  }
  throw InputError(fmt::format("{}: the run has {}{}, this command gives {}; resume with the same recipe and overrides",
                               path.string(), table, before, now));
}

void open_append(std::ofstream& out, const fs::path& path) {
  out.open(path, std::ios::app);
  if (!out) throw WorkError(path.string() + ": cannot be written (" + std::strerror(errno) + ")");
}

}  // namespace

RunFolder::RunFolder(const fs::path& path, const Recipe& recipe, bool resume) : path_(path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw InputError("--out " + path.string() + ": cannot be created (" + error.message() + ")");
  if (!fs::is_directory(path)) throw InputError("--out " + path.string() + ": is not a folder");
  lock_.emplace(WriterLock::of_folder(path));
  const fs::path recipe_file = path / "recipe.toml";
  if (!resume && (fs::exists(recipe_file) || fs::exists(checkpoints()))) {
    throw InputError("--out " + path.string() + ": already holds a run; add --resume to continue it, or choose another folder");
  }
  if (fs::exists(recipe_file))
    require_same_recipe(recipe_file, recipe);
  else
    write_file_atomic(recipe_file, to_toml(recipe));
}

void RunFolder::require_space(size_t bytes_needed) const {
  std::error_code error;
  const fs::space_info space = fs::space(path_, error);
  if (!error && space.available < bytes_needed) {
    throw InputError(fmt::format("--out {}: {} MiB free on that disk, the run's checkpoints need {} MiB", path_.string(),
                                 space.available >> 20, (bytes_needed >> 20) + 1));
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
