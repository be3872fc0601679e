#include "report/groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "recipe/recipe.h"
#include "recipe/recipe_json.h"
#include "report/records.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr size_t kMostSweepCurves = 8;

ordered_json group_ledger(const fs::path& folder, const char* kind) {
  const fs::path path = folder / fmt::format("{}.json", kind);
  ordered_json ledger = read_record_file(path);
  if (!ledger.is_object()) throw InputError(path.string() + ": not a ledger of `fairway run`");
  return ledger;
}

std::vector<fs::path> seed_runs(const fs::path& folder) {
  std::vector<fs::path> runs;
  const ordered_json ledger = group_ledger(folder, "seeds"), seeds = ledger.value("seeds", ordered_json::array());
  for (const ordered_json& seed : seeds) {
    const fs::path run = folder / fmt::format("seed{}", seed.dump());
    if (seed.is_number_integer() && fs::exists(run / "recipe.toml")) runs.push_back(run);
  }
  return runs;
}

void add_flat(const std::string& prefix, const ordered_json& value, ordered_json& out) {
  for (const auto& [key, one] : value.items()) {
    if (one.is_object())
      add_flat(prefix + key + ".", one, out);
    else
      out[prefix + key] = one;
  }
}

ordered_json flat_recipe(const fs::path& run) {
  const fs::path path = run / "recipe.toml";
  ordered_json out = ordered_json::object();
  add_flat("", to_json_value(parse_recipe(read_file(path), path.string())), out);
  return out;
}

std::string text_in(const ordered_json& record, const char* key) {
  return record.is_object() && record.contains(key) && record[key].is_string() ? record[key].get<std::string>() : "";
}

// "rung2/trial5" of the sweep's ledger; "key=value" becomes one column for each key.
ordered_json trial_row(const std::string& name, const ordered_json& record, ordered_json& keys) {
  ordered_json row{
      {"name", name.substr(name.find('/') + 1)}, {"rung", std::atoi(name.c_str() + 4)}, {"values", ordered_json::array()}};
  for (const ordered_json& set : record.value("set", ordered_json::array())) {
    const std::string text = set.is_string() ? set.get<std::string>() : set.dump();
    const size_t equals = std::min(text.find('='), text.size() - 1);
    if (std::find(keys.begin(), keys.end(), text.substr(0, equals)) == keys.end()) keys.push_back(text.substr(0, equals));
    row["values"].push_back(text.substr(equals + 1));
  }
  for (const auto& [from, to] :
       {std::pair{"share", "share"}, {"score", "score"}, {"steps", "steps"}, {"train_seconds", "seconds"}}) {
    const double value = number_of(record, from);
    row[to] = std::isfinite(value) ? ordered_json(value) : ordered_json();
  }
  if (record.contains("failed")) row["failed"] = text_in(record, "failed");
  return row;
}

}  // namespace

FolderKind folder_kind_of(const fs::path& folder) {
  if (fs::exists(folder / "recipe.toml")) return FolderKind::run;
  if (fs::exists(folder / "seeds.json")) return FolderKind::seeds;
  return fs::exists(folder / "sweep.json") ? FolderKind::sweep : FolderKind::other;
}

ReportSide side_of(const fs::path& folder) {
  const FolderKind kind = folder_kind_of(folder);
  ReportSide side{folder_name(folder), {}};
  if (kind == FolderKind::seeds) {
    side.runs = seed_runs(folder);
    if (side.runs.empty()) throw InputError(folder.string() + ": no seed has begun");
    return side;
  }
  if (kind != FolderKind::sweep) {
    side.runs = {folder};
    return side;
  }
  const std::vector<fs::path> trials = sweep_data(folder).runs;
  if (trials.empty()) throw InputError(folder.string() + ": no trial of the sweep has ended");
  side.runs = {trials.front()};
  return side;
}

std::vector<std::string> distinct_names(std::span<const fs::path> folders) {
  std::vector<fs::path> whole;
  for (const fs::path& folder : folders) {
    const fs::path path = fs::absolute(folder).lexically_normal();
    whole.push_back(path.has_filename() ? path : path.parent_path());
  }
  std::vector<std::string> names(whole.size());
  for (size_t parts = 1;; ++parts) {
    std::set<std::string> seen;
    bool longer = false;
    for (size_t i = 0; i < whole.size(); ++i) {
      fs::path rest = whole[i], name;
      for (size_t k = 0; k < parts && rest.has_filename(); ++k) {
        name = name.empty() ? rest.filename() : rest.filename() / name;
        rest = rest.parent_path();
      }
      longer = longer || rest.has_filename();
      names[i] = name.string();
      seen.insert(names[i]);
    }
    if (seen.size() == names.size() || !longer) return names;
  }
}

ordered_json seeds_data(const fs::path& folder) {
  const ordered_json ledger = group_ledger(folder, "seeds"), runs = ledger.value("runs", ordered_json::object());
  ordered_json rows = ordered_json::array();
  for (const auto& [name, summary] : runs.items()) {
    if (!summary.is_object()) continue;
    ordered_json row = ordered_json::object();
    for (const char* key :
         {"seed", "steps", "step_ms", "val_bpb", "roundtrip_bpb", "score_bpb", "artifact_bytes", "train_seconds"})
      if (std::isfinite(number_of(summary, key))) row[key] = summary[key];
    rows.push_back(std::move(row));
  }
  const ordered_json statistics = ledger.value("statistics", ordered_json::object());
  const auto part = [&](const char* key) {
    return statistics.is_object() && statistics.contains(key) && statistics[key].is_object() ? statistics[key]
                                                                                             : ordered_json::object();
  };
  return {{"rows", rows}, {"mean", part("mean")}, {"sd", part("sd")}};
}

SweepData sweep_data(const fs::path& folder) {
  const ordered_json ledger = group_ledger(folder, "sweep"), results = ledger.value("results", ordered_json::object());
  ordered_json keys = ordered_json::array(), trials = ordered_json::array();
  std::string metric;
  std::vector<std::pair<double, fs::path>> last;
  int top = 0;
  for (const auto& [name, record] : results.items()) {
    if (!record.is_object() || !name.starts_with("rung") || name.find('/') == std::string::npos ||
        name.find("..") != std::string::npos)
      continue;
    trials.push_back(trial_row(name, record, keys));
    if (metric.empty()) metric = text_in(record, "metric");
    const int rung = trials.back()["rung"].get<int>();
    if (rung > top) last.clear(), top = rung;
    if (const double score = number_of(record, "score"); rung == top && std::isfinite(score))
      last.emplace_back(score, folder / name);
  }
  std::stable_sort(last.begin(), last.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  SweepData out{{{"keys", keys}, {"trials", trials}, {"metric", metric}, {"best", nullptr}}, {}};
  for (const auto& [score, run] : last)
    if (out.runs.size() < kMostSweepCurves && fs::exists(run / "recipe.toml")) out.runs.push_back(run);
  const ordered_json best = ledger.value("best", ordered_json());
  if (best.is_object() && best.contains("run") && best.contains("set") && best["set"].is_array()) {
    const double score = number_of(best["run"], "score_bpb", number_of(best["run"], "val_bpb"));
    out.data["best"] = {{"trial", best.value("trial", ordered_json())},
                        {"set", best["set"]},
                        {"score", score},
                        {"metric", "bits per byte of the artifact"}};
  }
  return out;
}

ordered_json recipe_differences(std::span<const ReportSide> sides) {
  const bool seeds = std::any_of(sides.begin(), sides.end(), [](const ReportSide& side) { return side.runs.size() > 1; });
  std::vector<ordered_json> recipes;
  for (const ReportSide& side : sides) recipes.push_back(flat_recipe(side.runs.front()));
  ordered_json out = ordered_json::array();
  for (const auto& entry : recipes.front().items()) {
    const std::string& key = entry.key();
    ordered_json values = ordered_json::array();
    for (const ordered_json& recipe : recipes) values.push_back(recipe.value(key, ordered_json()));
    const bool same = std::all_of(values.begin(), values.end(), [&](const ordered_json& one) { return one == values.front(); });
    if (!same && !(seeds && key == "train.seed")) out.push_back({{"key", key}, {"values", values}});
  }
  return out;
}

}  // namespace fairway
