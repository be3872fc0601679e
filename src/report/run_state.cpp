#include "report/run_state.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "model/shape/model_shape.h"
#include "recipe/recipe.h"
#include "report/records.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The allocator's largest files: 7.05 bits a parameter of demo, 7.16 of smoke. A smaller budget is filled.
constexpr double kMostBitsPerParameter = 7.1;

double changed_at(const fs::path& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? static_cast<double>(file.st_mtime) : std::nan("");
}

ordered_json told(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

struct Training {
  double fraction = std::nan(""), seconds_left = std::nan("");
};

Training training_of(const fs::path& folder, const Recipe& recipe) {
  const std::vector<ordered_json> records = last_records(folder / "timing.jsonl");
  if (records.empty()) return {};
  const double spent = number_of(records.back(), "train_seconds"), step = number_of(records.back(), "step");
  if (schedule_clock(recipe) == ScheduleClock::time)
    return {spent / recipe.train.seconds, std::max(0.0, recipe.train.seconds - spent)};
  double recent = 0;
  const size_t count = std::min<size_t>(records.size(), 20);
  for (size_t i = records.size() - count; i < records.size(); ++i) recent += number_of(records[i], "step_ms") * 1e-3;
  const double steps = static_cast<double>(recipe.train.steps);
  return {step / steps, std::max(0.0, steps - step) * recent / static_cast<double>(count)};
}

double expected_seconds(const ordered_json& planned) { return number_of(planned, "seconds"); }

// Of a run without a ledger (`fairway train`) only training is known.
ordered_json plan_of(const ordered_json& ledger) {
  if (ledger.is_object() && ledger.contains("plan") && ledger["plan"].is_object() && ledger["plan"].contains("phases") &&
      ledger["plan"]["phases"].is_array())
    return ledger["plan"]["phases"];
  return ordered_json::array({{{"name", "train"}}});
}

}  // namespace

bool is_being_written(const fs::path& folder) {
  const fs::path lock = folder / ".lock";
  std::error_code error;
  if (!fs::is_regular_file(lock, error)) return false;
  const long process = std::strtol(read_file(lock, 64).c_str(), nullptr, 10);
  return process > 0 && fs::exists(fs::path("/proc") / std::to_string(process), error);
}

ordered_json run_state(const fs::path& folder, const Recipe& recipe) {
  const ordered_json ledger = read_record_file(folder / "run.json"), plan = plan_of(ledger);
  const ordered_json finished = ledger.is_object() && ledger.contains("phases") ? ledger["phases"] : ordered_json::object();
  ordered_json out{{"running", is_being_written(folder)},
                   {"phase", nullptr},
                   {"done", ordered_json::array()},
                   {"plan", ordered_json::array()}};
  const Training training = training_of(folder, recipe);
  double left = 0;
  bool unknown = false;
  for (const ordered_json& one : plan) {
    if (!one.is_object() || !one.contains("name") || !one["name"].is_string()) continue;
    const auto name = one["name"].get<std::string>();
    out["plan"].push_back(name);
    const bool done = finished.is_object() && finished.contains(name);
    if (done || (!ledger.is_object() && fs::exists(folder / "averaged.safetensors"))) {
      out["done"].push_back(name);
      continue;
    }
    if (out["phase"].is_null()) out["phase"] = name;
    const double seconds =
        name == "train" && std::isfinite(training.seconds_left) ? training.seconds_left : expected_seconds(one);
    if (std::isfinite(seconds))
      left += seconds;
    else
      unknown = true;
  }
  const bool trains = out["phase"] == "train";
  out["fraction"] = trains ? told(training.fraction) : ordered_json();
  out["seconds_left"] = left > 0 ? ordered_json(left) : ordered_json();
  out["more_to_come"] = unknown;
  out["since"] = told(changed_at(trains ? folder / "timing.jsonl" : folder / "run.json"));
  const ordered_json packing = ledger.is_object() && ledger.contains("plan") ? ledger["plan"] : ordered_json();
  const double most = static_cast<double>(parameter_count(recipe.model)) * kMostBitsPerParameter / 8;
  const bool published = packing.is_object() && packing.contains("as_published");  // the recipe's grids decide its size
  out["forecast_bytes"] =
      published ? ordered_json() : ordered_json(std::round(std::min(number_of(packing, "budget_bytes", INFINITY), most)));
  return out;
}

}  // namespace fairway
